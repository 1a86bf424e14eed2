package tp_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/tp"
)

// attend is causal attention of heads of queries over kv heads of keys and values, one after another in each row of fused;
// query head h goes with key head h*kv/heads.
func attend(fused []float64, tokens, heads, kv, dim int) []float64 {
	row := (heads + 2*kv) * dim
	out := make([]float64, tokens*heads*dim)
	for i := range tokens {
		for h := range heads {
			at := h * kv / heads
			w, sum := make([]float64, i+1), 0.
			for j := range w {
				s := 0.
				for d := range dim {
					s += fused[i*row+h*dim+d] * fused[j*row+(heads+at)*dim+d]
				}
				w[j] = math.Exp(s)
				sum += w[j]
			}
			for j := range w {
				for d := range dim {
					out[(i*heads+h)*dim+d] += w[j] / sum * fused[j*row+(heads+kv+at)*dim+d]
				}
			}
		}
	}
	return out
}

// A layer of attention with fewer heads of keys and values, whose queries, keys and values are one matrix, gives on every
// number of ranks what it gives on one.
func TestGroupedQueries(t *testing.T) {
	const tokens, width, heads, kv, dim = 5, 6, 8, 4, 3
	x, w, o := random(5, tokens*width), random(6, width*(heads+2*kv)*dim), random(7, heads*dim*width)
	want := mul(tokens, heads*dim, width, attend(mul(tokens, width, (heads+2*kv)*dim, x, w, false, false), tokens, heads, kv, dim), o, false, false)
	parts := []int{heads * dim, kv * dim, kv * dim}
	in := tp.Layout{Rows: width, Cols: (heads + 2*kv) * dim, Parts: parts, Unit: dim}
	out := tp.Layout{Rows: heads * dim, Cols: width, Unit: dim, ByRows: true}
	for _, n := range []int{1, 2, 4} {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			mine, below := shard(t, in, w, c.Rank(), n), shard(t, out, o, c.Rank(), n)
			require.Equal(t, (heads+2*kv)*dim/n, in.Share(n))
			fused := mul(tokens, width, in.Share(n), x, mine, false, false)
			y := mul(tokens, heads/n*dim, width, attend(fused, tokens, heads/n, kv/n, dim), below, false, false)
			y, err := tp.Leave(t.Context(), &tp.Group{Comm: c}, nil, y)
			require.NoError(t, err)
			require.InDeltaSlice(t, want, y, 1e-12)
		})
	}
	require.EqualError(t, in.Check(8), "tp: the 12 columns of part 1, in units of 3, do not divide among 8 ranks")
	in.Unit = 0
	require.NoError(t, in.Check(3), "heads would be cut, which Unit is there for")
}

// What Box and Boxes say of a part is what the part has; the rest of it is zeros. All parts together are the whole, once, or as often
// as there are replicas.
func TestLayout(t *testing.T) {
	all, powers := []int{1, 2, 3, 4, 6}, []int{1, 2, 4, 8}
	for _, tc := range []struct {
		l     tp.Layout
		ranks []int
	}{
		{tp.Layout{Rows: 5, Cols: 24}, all},
		{tp.Layout{Rows: 5, Cols: 36, Blocks: 3}, all},
		{tp.Layout{Rows: 0, Cols: 12}, all},
		{tp.Layout{Rows: 24, Cols: 5, ByRows: true}, all},
		{tp.Layout{Rows: 36, Cols: 5, Blocks: 3, ByRows: true}, all},
		{tp.Layout{Rows: 48, Cols: 2, Parts: []int{24, 12, 12}, Unit: 1, ByRows: true}, all},
		{tp.Layout{Rows: 11, Cols: 3, Pad: true, ByRows: true}, all},
		{tp.Layout{Rows: 5, Cols: 3, Unit: 2, Pad: true, ByRows: true}, all},
		{tp.Layout{Rows: 12, Cols: 0, ByRows: true}, all},
		{tp.Layout{Rows: 24, Cols: 2, Parts: []int{24}, ByRows: true}, all},
		{tp.Layout{Rows: 48, Cols: 3, Parts: []int{32, 8, 8}, Unit: 4, ByRows: true, Replicate: true}, powers},
		{tp.Layout{Rows: 16, Cols: 1, Blocks: 2, Unit: 4, ByRows: true, Replicate: true}, powers},
		{tp.Layout{Rows: 4, Cols: 2, Unit: 4, ByRows: true, Replicate: true}, powers},
	} {
		l := tc.l
		w := make([]int, l.Rows*l.Cols)
		for i := range w {
			w[i] = i + 1
		}
		for _, n := range tc.ranks {
			require.NoError(t, l.Check(n))
			seen := make([]int, len(w))
			var parts [][]int
			for r := range n {
				p := shard(t, l, w, r, n)
				parts = append(parts, p)
				for _, x := range p {
					if x > 0 {
						seen[x-1]++
					}
				}
				if l.Parts == nil && !l.Pad {
					shape, offset, extent, err := l.Box(r, n)
					require.NoError(t, err)
					require.Equal(t, box(w, shape, offset, extent), p)
				}
				if !l.ByRows {
					continue
				}
				require.Len(t, p, l.Share(n)*l.Cols)
				boxes, err := l.Boxes(r, n)
				require.NoError(t, err)
				for _, b := range boxes {
					require.Equal(t, box(w, []int{l.Rows, l.Cols}, b.Offset, b.Size), p[b.Lo:b.Hi])
					clear(p[b.Lo:b.Hi])
				}
				require.Equal(t, make([]int, len(p)), p, "the rest is zeros")
				parts[r] = shard(t, l, w, r, n)
			}
			for i, k := range seen {
				want := l.Replicas(n)
				if l.Parts != nil && i < l.Parts[0]*l.Cols { // queries
					want = 1
				}
				require.Equal(t, want, k, "element %d on %d ranks", i, n)
			}
			back, err := tp.Unshard(l, parts)
			require.NoError(t, err)
			require.Equal(t, w, back)
		}
	}
	require.Equal(t, []int{11, 21, 31}, shard(t, tp.Layout{Rows: 1, Cols: 6, Blocks: 3}, []int{10, 11, 20, 21, 30, 31}, 1, 2))
	_, err := tp.Layout{Rows: 2, Cols: 2}.Boxes(0, 1)
	require.ErrorContains(t, err, "tp: Boxes are for a matrix that is split by rows")
	_, err = tp.Layout{Rows: 2, Cols: 2, ByRows: true}.Boxes(2, 2)
	require.EqualError(t, err, "tp: rank 2 of 2")
	for _, l := range []tp.Layout{{Rows: 2, Cols: 2, Pad: true}, {Rows: 2, Cols: 4, Parts: []int{2, 2}}} {
		_, _, _, err = l.Box(0, 2)
		require.ErrorContains(t, err, "use Boxes")
	}
}

// A Layout that cannot be is an error, whatever its numbers are, and takes no memory.
func TestImpossibleLayouts(t *testing.T) {
	const huge = math.MaxInt
	for text, l := range map[string]tp.Layout{
		"tp: parts of [4 3] columns are not the 8 of the matrix":                                                                              {Rows: 2, Cols: 8, Parts: []int{4, 3}},
		"tp: parts of [4 5] columns are not the 8 of the matrix":                                                                              {Rows: 2, Cols: 8, Parts: []int{4, 5}},
		"tp: parts of [9 -1] rows are not the 8 of the matrix":                                                                                {Rows: 8, Cols: 2, Parts: []int{9, -1}, ByRows: true},
		"tp: a matrix in no parts":                                                                                                            {Rows: 2, Cols: 8, Parts: []int{}},
		"tp: a matrix in 2 blocks and in parts of [4 4] columns; give one of them":                                                            {Rows: 2, Cols: 8, Blocks: 2, Parts: []int{4, 4}},
		"tp: a matrix in units of -1 columns":                                                                                                 {Rows: 2, Cols: 8, Unit: -1},
		"tp: matrices that lie side by side cannot be padded":                                                                                 {Rows: 2, Cols: 8, Blocks: 2, Pad: true},
		"tp: 8 columns are not 3 blocks of equal size":                                                                                        {Rows: 2, Cols: 8, Blocks: 3, Unit: 2},
		"tp: 8 columns in units of 3 do not divide among 2 ranks":                                                                             {Rows: 2, Cols: 8, Unit: 3},
		"tp: the 3 columns of part 1, in units of 1, do not divide among 2 ranks":                                                             {Rows: 2, Cols: 8, Parts: []int{4, 3, 1}},
		fmt.Sprintf("tp: 8 columns padded to units of %d on 2 ranks", huge):                                                                   {Rows: 2, Cols: 8, Unit: huge, Pad: true},
		fmt.Sprintf("tp: %d columns padded to units of 0 on 2 ranks", huge):                                                                   {Rows: 1, Cols: huge, Pad: true},
		fmt.Sprintf("tp: %d columns are not %d blocks of equal size", huge-1, huge):                                                           {Rows: 1, Cols: huge - 1, Blocks: huge, Unit: 2},
		fmt.Sprintf("tp: %d columns in blocks of equal size, 1, do not divide among 2 ranks", huge):                                           {Rows: 1, Cols: huge},
		"tp: a matrix cannot be both padded and replicated":                                                                                   {Rows: 2, Cols: 8, Unit: 4, Pad: true, Replicate: true},
		"tp: the 12 columns of part 1, in units of 4, do not divide among 8 ranks":                                                            {Rows: 2, Cols: 56, Parts: []int{32, 12, 12}, Unit: 4, Replicate: true},
		"tp: the 6 columns of part 1, in units of 4, do not divide among 8 ranks":                                                             {Rows: 2, Cols: 38, Parts: []int{32, 6}, Unit: 4, Replicate: true},
		"tp: 12 columns in units of 4 do not divide among 8 ranks":                                                                            {Rows: 2, Cols: 12, Unit: 4, Replicate: true},
		"tp: parts of [32 8 4] columns, in units of 4, of which some would be on 4 ranks each and others on 8; give each a Layout of its own": {Rows: 2, Cols: 44, Parts: []int{32, 8, 4}, Unit: 4, Replicate: true},
	} {
		size := 2
		if l.Replicate {
			size = 8
		}
		require.EqualError(t, l.Check(size), text)
		require.Zero(t, l.Share(size))
		require.Zero(t, l.Replicas(size))
		_, err := tp.Shard(l, []int{1}, 0, size)
		require.EqualError(t, err, text)
	}
	require.NoError(t, tp.Layout{Rows: 1, Cols: 1 << 40, Blocks: 1 << 40}.Check(1), "no list of all blocks")
}

func shard[T ccl.Number](t testing.TB, l tp.Layout, w []T, rank, size int) []T {
	part, err := tp.Shard(l, w, rank, size)
	require.NoError(t, err)
	return part
}
