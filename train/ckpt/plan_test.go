package ckpt

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// elements are those of a range of a box, by their place in the whole tensor.
func (p *piece) elements() (list []int) {
	for k := p.Lo; k < p.Hi; k++ {
		at, flat, stride := k, 0, 1
		for d := len(p.Shape) - 1; d >= 0; d-- {
			flat += (p.Offset[d] + at%p.Size[d]) * stride
			at /= p.Size[d]
			stride *= p.Shape[d]
		}
		list = append(list, flat)
	}
	return list
}

// However boxes and ranges overlap, each element that somebody has is planned once, and one that nobody has is an error, with how
// many there are. A slow count says what is right.
func TestPlanOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	whole, holes := 0, 0
	for trial := range 4000 {
		shape := make([]int, rnd.IntN(4))
		for d := range shape {
			shape[d] = 1 + rnd.IntN(5)
		}
		ranks := make([][]piece, 1+rnd.IntN(5))
		has := map[int]bool{}
		for r := range ranks {
			for range rnd.IntN(4) {
				p := piece{Name: "x", Type: "I8", Shape: shape, Offset: make([]int, len(shape)), Size: make([]int, len(shape))}
				for d, n := range shape {
					p.Offset[d] = rnd.IntN(n)
					p.Size[d] = rnd.IntN(n - p.Offset[d] + 1)
					if rnd.IntN(2) == 0 {
						p.Offset[d], p.Size[d] = 0, n
					}
				}
				p.Hi = prod(p.Size)
				if rnd.IntN(2) == 0 {
					p.Lo = rnd.IntN(p.Hi + 1)
					p.Hi = p.Lo + rnd.IntN(p.Hi-p.Lo+1)
				}
				require.NoError(t, p.check())
				ranks[r] = append(ranks[r], p)
				for _, e := range p.elements() {
					has[e] = true
				}
			}
		}
		ix, tasks, err := plan(ranks, nil)
		if len(has) < prod(shape) && len(slices.Concat(ranks...)) > 0 {
			holes++
			require.EqualError(t, err, fmt.Sprintf(`tensor "x": no rank holds %d of its %d elements`, prod(shape)-len(has), prod(shape)), "trial %d", trial)
			continue
		}
		require.NoError(t, err)
		whole++
		seen, next := map[int]int{}, make([]int, len(ranks))
		for _, p := range ix.Pieces {
			task := tasks[p.File][next[p.File]] // in the order of the index
			next[p.File]++
			own := ranks[p.File][task.Of]
			require.Equal(t, []any{p.Lo, p.Hi, p.Offset, p.Size}, []any{task.Lo, task.Hi, own.Offset, own.Size})
			require.True(t, own.Lo <= p.Lo && p.Hi <= own.Hi, "it has what it is to write")
			for _, e := range p.elements() {
				seen[e]++
			}
		}
		require.Len(t, seen, len(has))
		for e, n := range seen {
			require.Equal(t, 1, n, "element %d", e)
		}
		for r := range tasks {
			require.Len(t, tasks[r], next[r])
		}
	}
	require.Greater(t, whole, 800)
	require.Greater(t, holes, 800)
}

// A box inside another one, which is written, is not written again, and a hole that overlapping boxes would make up for by number is
// found.
func TestOverlappingBoxes(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		x := Tensor{Name: "x", Shape: []int{4}, Data: []float32{1, 2, 3, 4}}
		if c.Rank() == 1 {
			x.Offset, x.Size, x.Data = []int{1}, []int{2}, []float32{2, 3}
		}
		require.NoError(t, Save(t.Context(), c, Step(dir, 1), nil, []Tensor{x}))
		ix, err := openIndex(folder(Step(dir, 1)))
		require.NoError(t, err)
		require.Len(t, ix.Pieces, 1)
		x.Offset, x.Size, x.Data = []int{c.Rank()}, []int{2}, []float32{1, 2} // 0, 1 and 1, 2
		require.ErrorContains(t, Save(t.Context(), c, Step(dir, 2), nil, []Tensor{x}), `tensor "x": no rank holds 1 of its 4 elements`)
		y := Tensor{Name: "x", Shape: []int{3}, Offset: []int{c.Rank()}, Size: []int{2}, Data: []float32{float32(c.Rank()), float32(c.Rank()) + 1}}
		require.NoError(t, Save(t.Context(), c, Step(dir, 2), nil, []Tensor{y}))
		got := make([]float32, 3)
		require.NoError(t, Load(t.Context(), c, Step(dir, 2), nil, []Tensor{{Name: "x", Shape: []int{3}, Data: got}}))
		require.Equal(t, []float32{0, 1, 2}, got)
	})
}

// layoutOf is how a job of size ranks has tensors of these shapes, at random but the same on all ranks: each cut into boxes along a
// dimension, and each box into ranges, or held alike.
func layoutOf(seed uint64, rank, size int, shapes [][]int) (ts []Tensor) {
	for i, s := range shapes {
		x := rand.New(rand.NewPCG(seed, uint64(i)))
		off, ext := make([]int, len(s)), append([]int{}, s...)
		groups := 1
		for g := size; g > 1; g-- {
			if size%g == 0 && x.IntN(2) == 0 {
				groups = g
				break
			}
		}
		if len(s) == 0 {
			groups = 1
		} else {
			d, me := x.IntN(len(s)), rank%groups
			lo, hi := s[d]*me/groups, s[d]*(me+1)/groups
			off[d], ext[d] = lo, hi-lo
		}
		of, r, n := size/groups, rank/groups, prod(ext)
		lo, hi := n*r/of, n*(r+1)/of
		if x.IntN(3) == 0 {
			lo, hi = 0, n
		}
		ts = append(ts, Tensor{Name: fmt.Sprint("t", i), Shape: s, Offset: off, Size: ext, Lo: lo, Hi: hi, Data: make([]int32, hi-lo)})
	}
	return ts
}

// eachElement calls f with each element of ts, and a number that no other one has.
func eachElement(t testing.TB, ts []Tensor, f func(x *int32, number int32)) {
	ps, _, err := describe(ts)
	require.NoError(t, err)
	for i, p := range ps {
		data := ts[i].Data.([]int32)
		for k, flat := range p.elements() {
			f(&data[k], int32(1000*i+flat+1))
		}
	}
}

// Random layouts of tensors of 0 to 4 dimensions, saved by 1 to 6 ranks, loaded by 1 to 6 ranks in another layout, exported, and
// loaded from there in a third one.
func TestRandomLayouts(t *testing.T) {
	trials := 60
	if testing.Short() {
		trials = 10
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	for trial := range trials {
		var shapes [][]int
		for range 6 {
			var s []int
			for range rnd.IntN(5) {
				s = append(s, rnd.IntN(6)+rnd.IntN(2))
			}
			shapes = append(shapes, s)
		}
		to, seed := filepath.Join(dir, fmt.Sprint(trial)), uint64(trial)
		a, b := rnd.IntN(6)+1, rnd.IntN(6)+1
		ccltest.Run(t, a, func(t testing.TB, c *ccl.Comm) {
			ts := layoutOf(seed, c.Rank(), a, shapes)
			eachElement(t, ts, func(x *int32, number int32) { *x = number })
			require.NoError(t, Save(t.Context(), c, to, nil, ts))
		})
		require.NoError(t, Export(to, to+"x", 50, nil))
		ccltest.Run(t, b, func(t testing.TB, c *ccl.Comm) {
			for i, from := range []string{to, to + "x"} {
				ts := layoutOf(seed+1000*uint64(i+1), c.Rank(), b, shapes)
				require.NoError(t, Load(t.Context(), c, from, nil, ts))
				eachElement(t, ts, func(x *int32, number int32) { require.Equal(t, number, *x) })
			}
		})
	}
}
