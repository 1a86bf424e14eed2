package ckpt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// task is a range of a piece that a rank holds, for that rank to write.
type task struct {
	Of int `json:"of"` // the piece, among those of the rank
	Lo int `json:"lo"`
	Hi int `json:"hi"`
}

// holder is a rank that has elements lo to hi of a box.
type holder struct{ rank, of, lo, hi int }

// box is a box of a tensor, and who has what of it.
type box struct {
	piece
	holders []holder
	written []piece // the ranges that are planned
}

// place is where a box is: its name is that of a piece, and no copy.
type place struct{ name, box string }

// plan says who writes what: each element once, by the rank with least to write among those that
// have it. ix lists the pieces, with the rank as their file, and tasks has them by rank, in the
// order of the index. An element that nobody has is an error, wherever boxes overlap.
func plan(all [][]piece, state any) (ix *index, tasks [][]task, err error) {
	ix = &index{Tensors: map[string]tensor{}}
	if ix.State, err = json.Marshal(state); err != nil {
		return nil, nil, fmt.Errorf("the state: %w", err)
	}
	boxes, order, err := ix.boxes(all)
	if err != nil {
		return nil, nil, err
	}
	tasks = make([][]task, len(all))
	load := make([]int, len(all))
	for _, name := range order {
		bs, have := boxes[name], 0
		// A box within another one adds nothing when its turn comes.
		slices.SortStableFunc(bs, func(a, b *box) int { return cmp.Compare(prod(b.Size), prod(a.Size)) })
		for i, b := range bs {
			for _, s := range b.shares(bs[:i]) {
				best := s.of[0]
				for _, h := range s.of[1:] {
					if load[h.rank] < load[best.rank] {
						best = h
					}
				}
				p := b.piece
				p.File, p.Lo, p.Hi = best.rank, s.lo, s.hi
				b.written, ix.Pieces = append(b.written, p), append(ix.Pieces, p)
				tasks[p.File] = append(tasks[p.File], task{best.of, p.Lo, p.Hi})
				load[p.File] += (p.Hi - p.Lo) * dtypes[p.Type]
				have += p.Hi - p.Lo
			}
		}
		if n := prod(ix.Tensors[name].Shape); have < n {
			return nil, nil, fmt.Errorf("tensor %q: no rank holds %d of its %d elements", name, n-have, n)
		}
	}
	return ix, tasks, nil
}

// boxes sorts what the ranks have by tensor and box, and lists the tensors in ix. order is that in
// which they first come.
func (ix *index) boxes(all [][]piece) (boxes map[string][]*box, order []string, err error) {
	boxes = map[string][]*box{}
	byPlace := map[place]*box{}
	var key []byte
	for r, ps := range all {
		for i, p := range ps {
			t, ok := ix.Tensors[p.Name]
			if ok && (t.Type != p.Type || !slices.Equal(t.Shape, p.Shape)) {
				return nil, nil, fmt.Errorf("tensor %q is %s %v on rank %d, and %s %v on a rank before it", p.Name, p.Type,
					p.Shape, r, t.Type, t.Shape)
			}
			if !ok {
				ix.Tensors[p.Name] = tensor{p.Type, p.Shape}
				order = append(order, p.Name)
			}
			key = key[:0]
			for _, x := range [][]int{p.Offset, p.Size} {
				for _, v := range x {
					key = strconv.AppendInt(append(key, 0), int64(v), 10)
				}
			}
			at := place{p.Name, string(key)}
			b := byPlace[at]
			if b == nil {
				b = &box{piece: p}
				byPlace[at] = b
				boxes[p.Name] = append(boxes[p.Name], b)
			}
			b.holders = append(b.holders, holder{r, i, p.Lo, p.Hi})
		}
	}
	return boxes, order, nil
}

// share is a range of a box that several ranks have alike.
type share struct {
	lo, hi int
	of     []holder
}

// shares cuts b wherever a holder's range begins or ends, and leaves out what is written of the boxes before.
func (b *box) shares(before []*box) (list []share) {
	done := b.done(before)
	slices.SortStableFunc(b.holders, func(x, y holder) int { return cmp.Compare(x.lo, y.lo) })
	var cuts []int
	for _, h := range b.holders {
		cuts = append(cuts, h.lo, h.hi)
	}
	for _, r := range done {
		cuts = append(cuts, r.dst, r.dst+r.n)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	next, active := 0, []holder(nil)
	for i := 1; i < len(cuts); i++ {
		lo, hi := cuts[i-1], cuts[i]
		for ; next < len(b.holders) && b.holders[next].lo <= lo; next++ {
			active = append(active, b.holders[next])
		}
		active = slices.DeleteFunc(active, func(h holder) bool { return h.hi <= lo })
		for len(done) > 0 && done[0].dst+done[0].n <= lo {
			done = done[1:]
		}
		if len(active) == 0 || len(done) > 0 && done[0].dst <= lo {
			continue
		}
		of := slices.Clone(active)
		slices.SortFunc(of, func(x, y holder) int { return cmp.Compare(x.rank, y.rank) })
		list = append(list, share{lo, hi, of})
	}
	return list
}

// done are the runs of b that are written with the boxes before, in order.
func (b *box) done(before []*box) (runs []run) {
	whole := b.piece
	whole.Lo, whole.Hi = 0, prod(b.Size)
	for _, o := range before {
		if !b.meets(o) {
			continue
		}
		for i := range o.written {
			runs = append(runs, overlap(&whole, &o.written[i])...)
		}
	}
	slices.SortFunc(runs, func(x, y run) int { return cmp.Compare(x.dst, y.dst) })
	return runs
}

// meets reports whether two boxes have an element in common.
func (b *box) meets(o *box) bool {
	for d := range b.Shape {
		if b.Offset[d] >= o.Offset[d]+o.Size[d] || o.Offset[d] >= b.Offset[d]+b.Size[d] {
			return false
		}
	}
	return true
}
