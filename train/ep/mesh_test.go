package ep_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ep"
	"github.com/goccl/goccl/train/mesh"
)

// Two replicas of experts that two ranks share: the experts' gradients are averaged over their replicas alone, and
// divided by the ranks that share them, since the loss is a mean over all four; those of the router and of the tokens
// are what one rank with all tokens has, a quarter of it each. The ranks have 3, 2, 0 and 7 of the tokens.
func TestBesideReplicas(t *testing.T) {
	cuts := []int{0, 3, 5, 5, 12}
	x, logits := numbers[float64](1, tokens*width), numbers[float64](2, tokens*experts)
	w, dy := numbers[float64](3, experts*width*width), numbers[float64](4, tokens*width)
	var dx, dlogits, dw []float64
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		l := &ep.Layer{Comm: c, Experts: experts, Top: top, Width: width}
		_, _, dx, dlogits, dw = run(t.Context(), t, l, x, logits, w, dy)
	})
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "replicas", Size: 2}, mesh.Dim{Name: "experts", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		lo, hi := cuts[c.Rank()], cuts[c.Rank()+1]
		l := &ep.Layer{Comm: m.Comm("experts"), Experts: experts, Top: top, Width: width}
		_, _, gotx, gotlogits, gotw := run(t.Context(), t, l, x[lo*width:hi*width], logits[lo*experts:hi*experts], w,
			dy[lo*width:hi*width])
		require.InDeltaSlice(t, dx[lo*width:hi*width], gotx, 1e-15)
		require.InDeltaSlice(t, dlogits[lo*experts:hi*experts], gotlogits, 1e-15)
		require.NoError(t, ccl.AllReduce(t.Context(), m.Comm("replicas"), gotw, gotw, ccl.Avg))
		first := l.Comm.Rank() * len(gotw)
		for i, d := range gotw {
			require.InDelta(t, dw[first+i]/4, d/float64(l.Comm.Size()), 1e-15)
		}
	})
}

// Ranks of tp that have a part of each expert, two of its outputs or the third, make parts of the sums that whole experts
// make, and share the auxiliary loss.
func TestBesideTensorParallel(t *testing.T) {
	cuts := []int{0, 5, 12}
	x, logits := numbers[float64](1, tokens*width), numbers[float64](2, tokens*experts)
	w, dy := numbers[float64](3, experts*width*width), numbers[float64](4, tokens*width)
	step := func(t testing.TB, l *ep.Layer, w []float64) (sums [][]float64, dw []float64) {
		lo, hi := cuts[l.Comm.Rank()], cuts[l.Comm.Rank()+1]
		_, y, dx, dlogits, dw := run(t.Context(), t, l, x[lo*width:hi*width], logits[lo*experts:hi*experts], w, dy[lo*width:hi*width])
		return [][]float64{y, dx, dlogits}, dw
	}
	var sums [2][][]float64
	var dw [2][]float64
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		sums[c.Rank()], dw[c.Rank()] = step(t, kinds(c, "mixtral"), w)
	})
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "experts", Size: 2}, mesh.Dim{Name: "tp", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		own := func(i int) bool { return (i/width%width == 2) == (m.Coord("tp") == 1) }
		part := slices.Clone(w)
		for i := range part {
			if !own(i) {
				part[i] = 0
			}
		}
		l := kinds(m.Comm("experts"), "mixtral")
		l.Balance /= 2
		got, gotw := step(t, l, part)
		for i, whole := range sums[l.Comm.Rank()] {
			require.NotEqual(t, whole, got[i])
			require.NoError(t, ccl.AllReduce(t.Context(), m.Comm("tp"), got[i], got[i], ccl.Sum))
			require.InDeltaSlice(t, whole, got[i], 1e-14)
		}
		for i, d := range gotw {
			if own(i) {
				require.InDelta(t, dw[l.Comm.Rank()][i], d, 1e-14)
			}
		}
	})
}
