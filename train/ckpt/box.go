package ckpt

import "slices"

// run is n elements that are contiguous in two pieces.
type run struct{ dst, src, n int }

// overlap is what dst and src, of one shape, have in common.
func overlap(dst, src *piece) (out []run) {
	shape, do, ds := slices.Clone(dst.Shape), slices.Clone(dst.Offset), slices.Clone(dst.Size)
	so, ss := slices.Clone(src.Offset), slices.Clone(src.Size)
	if len(shape) == 0 {
		shape, do, ds, so, ss = []int{1}, []int{0}, []int{1}, []int{0}, []int{1}
	}
	for d := len(shape) - 1; d > 0 && ds[d] == shape[d] && ss[d] == shape[d]; d-- {
		// whole rows in both: one dimension less
		k := shape[d]
		shape, do, ds, so, ss = shape[:d], do[:d], ds[:d], so[:d], ss[:d]
		for _, x := range [][]int{shape, do, ds, so, ss} {
			x[d-1] *= k
		}
	}
	last := len(shape) - 1
	lo, hi := make([]int, len(shape)), make([]int, len(shape))
	for d := range shape {
		lo[d], hi[d] = max(do[d], so[d]), min(do[d]+ds[d], so[d]+ss[d])
		if lo[d] >= hi[d] {
			return nil
		}
	}
	at := slices.Clone(lo)
	for {
		l, s := 0, 0 // where the row's part begins in each box
		for d := range shape {
			l, s = l*ds[d]+at[d]-do[d], s*ss[d]+at[d]-so[d]
		}
		skip, end := max(0, dst.Lo-l, src.Lo-s), min(hi[last]-lo[last], dst.Hi-l, src.Hi-s)
		if skip < end {
			out = append(out, run{l + skip - dst.Lo, s + skip - src.Lo, end - skip})
		}
		d := last - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < hi[d] {
				break
			}
			at[d] = lo[d]
		}
		if d < 0 {
			return out
		}
	}
}
