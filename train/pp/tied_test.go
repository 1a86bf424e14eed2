package pp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/pp"
)

// Three stages, of which the first and the last use one parameter: both have it, and the sum of its gradients.
func ExampleNewEnds() {
	ctx := context.Background()
	lines := make([]string, 3)
	ccltest.Example(3, func(c *ccl.Comm) error {
		ends, err := pp.NewEnds(ctx, c)
		if err != nil {
			return err
		}
		defer ends.Close()
		w, g := []float32{float32(c.Rank() + 5)}, []float32{float32(c.Rank() + 1)}
		if err := pp.Begin(ctx, ends, w); err != nil {
			return err
		}
		if err := pp.SumEnds(ctx, ends, g); err != nil {
			return err
		}
		lines[c.Rank()] = fmt.Sprint("stage ", c.Rank(), " has ", w[0], " and the gradient ", g[0], "; it counts there: ", ends.Owner())
		ccl.Barrier(ctx, c)
		return nil
	})
	for _, l := range lines {
		fmt.Println(l)
	}
	// Output:
	// stage 0 has 5 and the gradient 4; it counts there: true
	// stage 1 has 6 and the gradient 2; it counts there: false
	// stage 2 has 5 and the gradient 4; it counts there: false
}

// Copies at both ends stay the same bits as one parameter that gets both gradients, whatever the number of stages is.
func TestEnds(t *testing.T) {
	const n, steps = 50, 6
	gradient := func(end, step int) []float32 {
		r, g := rand.New(rand.NewPCG(uint64(end), uint64(step))), make([]float32, n)
		for i := range g {
			g[i] = float32(r.NormFloat64())
		}
		return g
	}
	first := gradient(7, 7)
	for _, stages := range []int{1, 2, 3, 4} {
		want := append([]float32(nil), first...)
		for step := range steps {
			a, b := gradient(0, step), gradient(1, step)
			for i := range want {
				sum := a[i] + b[i]
				want[i] -= sum * .25
			}
		}
		for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(stages)}, {ccltest.Hosts(stages)}} {
			if stages == 1 && opts != nil {
				continue
			}
			ccltest.Run(t, stages, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				ends, err := pp.NewEnds(ctx, c)
				require.NoError(t, err)
				last := c.Rank() == stages-1
				require.Equal(t, stages > 1 && (c.Rank() == 0 || last), ends.Has())
				w := make([]float32, n)
				if c.Rank() == 0 {
					copy(w, first)
				}
				require.NoError(t, pp.Begin(ctx, ends, w))
				for step := range steps {
					g := make([]float32, n)
					if c.Rank() == 0 {
						g = gradient(0, step)
					}
					if last {
						for i, x := range gradient(1, step) {
							g[i] += x
						}
					}
					require.NoError(t, pp.SumEnds(ctx, ends, g))
					for i := range w {
						w[i] -= g[i] * .25
					}
				}
				if c.Rank() == 0 || last {
					require.Equal(t, want, w, "stage %d of %d", c.Rank(), stages)
				} else {
					require.Equal(t, make([]float32, n), w)
				}
				require.NoError(t, ccl.Barrier(ctx, c))
				require.NoError(t, ends.Close())
			}, opts...)
		}
	}
	_, err := pp.NewEnds(t.Context(), nil)
	require.EqualError(t, err, "pp: NewEnds: the Comm is nil")
	for _, none := range []*pp.Ends{nil, {}} {
		require.False(t, none.Has())
		require.False(t, none.Owner())
		require.EqualError(t, pp.Begin(t.Context(), none, []float32{1}), "pp: Begin: the Ends are nil, or not those of NewEnds")
		require.EqualError(t, pp.SumEnds(t.Context(), none, []float32{1}), "pp: SumEnds: the Ends are nil, or not those of NewEnds")
		require.NoError(t, none.Close())
	}
}

// An end whose pipeline has failed does not wait for the other.
func TestEndsFail(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, world.Rank())
		ends, err := pp.NewEnds(t.Context(), c)
		require.NoError(t, err)
		ccltest.Barrier(t, world) // all have their ends before the pipeline fails
		switch c.Rank() {         // the last stage never comes
		case 0:
			require.ErrorContains(t, pp.SumEnds(t.Context(), ends, []float32{1}), "a stage between")
		case 1:
			c.Abort(fmt.Errorf("a stage between"))
		}
		ccltest.Barrier(t, world)
		require.NoError(t, ends.Close())
	})
}
