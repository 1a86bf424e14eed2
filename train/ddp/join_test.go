package ddp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/zero"
)

// Two ranks fit y = x with 3 batches and with 1: rank 1 takes part with zeros until rank 0 is done.
func ExampleJoin() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		return fit(ctx, c, [][][]float64{{{1}, {2, 4}, {3}}, {{5}}}[c.Rank()])
	})
	// Output:
	// step 0: mean 3 of 2
	// step 1: mean 3 of 2
	// step 2: mean 3 of 1
}

// fit averages what it is given, as gradients.
func fit(ctx context.Context, c *ccl.Comm, batches [][]float64) error {
	g := []float64{0}
	r, err := ddp.New(ctx, c, []ccl.Buf{ccl.BufOf(g)}, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	j, err := ddp.NewJoin(c)
	if err != nil {
		return err
	}
	for step := 0; ; step++ {
		var batch []float64
		if step < len(batches) {
			batch = batches[step]
		}
		total, err := j.Next(ctx, len(batch))
		if err != nil || total == 0 {
			return err
		}
		g[0] = 0
		for _, x := range batch {
			g[0] += x * j.Weight()
		}
		if err := r.All(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("step %d: mean %v of %d\n", step, g[0], total)
		}
	}
}

// Uneven numbers of batches, of uneven sizes, train as one rank does that has all samples of each step, with a Reducer and with
// zero at all stages.
func TestJoin(t *testing.T) {
	const rate = .1
	samples := func(rank, step int) []float64 { // of a step; 0, 5 and 3 steps have any, and one has none in between
		if step >= []int{0, 5, 3}[rank] || rank == 1 && step == 2 {
			return nil
		}
		var x []float64
		for i := range 1 + (rank+step)%3 {
			x = append(x, float64(rank*3+step*7+i*5)/8)
		}
		return x
	}
	want, steps := 1., 0
	for step := 0; ; step++ {
		var all []float64
		for r := range 3 {
			all = append(all, samples(r, step)...)
		}
		if len(all) == 0 {
			break
		}
		g := 0.
		for _, x := range all { // of (w*x - 1)^2/2
			g += x * (want*x - 1) / float64(len(all))
		}
		want -= rate * g
		steps++
	}
	require.Equal(t, 5, steps)
	for stage := -1; stage < 4; stage++ {
		for _, sum := range []bool{false, true} {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				j, err := ddp.NewJoin(c)
				require.NoError(t, err)
				g, w := []float64{0}, []float64{1}
				var r *ddp.Reducer
				var m *zero.Model[float64, float64]
				if stage < 0 {
					r = newReducer(t, c, []ccl.Buf{ccl.BufOf(g)}, &ddp.Options{Sum: sum})
					defer r.Close()
				} else {
					m, err = zero.New[float64, float64](ctx, c, [][]int{{1}}, &zero.Options{Stage: stage, Sum: sum})
					require.NoError(t, err)
					defer m.Close()
					require.NoError(t, m.Load(ctx, 0, [][]float64{w}, 0))
				}
				step := 0
				for ; ; step++ {
					batch := samples(c.Rank(), step)
					total, err := j.Next(ctx, len(batch))
					require.NoError(t, err)
					if total == 0 {
						break
					}
					weight := j.Weight()
					if sum {
						weight /= 3
					}
					if m != nil {
						p, err := m.Params(ctx, 0)
						require.NoError(t, err)
						w[0] = p[0][0]
						m.Release(0)
						gs, err := m.Grads(ctx, 0)
						require.NoError(t, err)
						g = gs[0]
					}
					g[0] = 0
					for _, x := range batch {
						g[0] += x * (w[0]*x - 1) * weight
					}
					if m != nil {
						require.NoError(t, m.Reduce(0))
						require.NoError(t, m.Step(ctx, func(_ zero.Piece, w, g []float64) error { w[0] -= rate * g[0]; return nil }))
						continue
					}
					require.NoError(t, r.All(ctx))
					w[0] -= rate * g[0]
				}
				require.Equal(t, steps, step)
				require.Zero(t, j.Weight())
				if m != nil {
					p, err := m.Params(ctx, 0)
					require.NoError(t, err)
					w[0] = p[0][0]
					m.Release(0)
				}
				require.InDelta(t, want, w[0], 1e-12, "stage %d, Sum %v", stage, sum)
			})
		}
	}
}

// A wrong number on one rank ends the step on all, and a step allocates nothing.
func TestJoinFails(t *testing.T) {
	_, err := ddp.NewJoin(nil)
	require.EqualError(t, err, "ddp: NewJoin: the Comm is nil")
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		j, err := ddp.NewJoin(world)
		require.NoError(t, err)
		require.Zero(t, ccltest.Allocs(t, world, 5, func() { j.Next(ctx, 1+world.Rank()) }))
		c := ccltest.Split(t, world, 0, world.Rank())
		if j, err = ddp.NewJoin(c); err == nil {
			_, err = j.Next(ctx, 1-2*c.Rank())
		}
		require.ErrorContains(t, err, "ddp: Join: a step with -1 samples")
		require.NoError(t, ccl.Barrier(ctx, world))
	})
}
