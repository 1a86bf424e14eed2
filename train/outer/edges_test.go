package outer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/quant"
)

// Ranks that are at different inner steps when an exchange begins again end it in the same step, before its fragment's next turn.
func TestRanksApart(t *testing.T) {
	for _, o := range []*outer.Options{{Every: 4, Delay: 4}, {Every: 4, Delay: 4, Mix: .5, Codec: quant.Int8}, {Every: 4, Delay: 4, Eager: true}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), 500)
			u := begun(t, ccltest.Split(t, c, 0, c.Rank()), m, o)
			for step := range 5 + c.Rank() { // an exchange begins in the fourth
				m.step(step)
				advance(t, u)
			}
			w, err := outer.New(m.units, o) // for which no exchange is under way, as if that of u had been lost
			require.NoError(t, err)
			from := u.State()
			for i, b := range w.State() {
				if x, ok := ccl.SliceOf[int64](b); ok {
					y, _ := ccl.SliceOf[int64](from[i])
					copy(x, y)
					continue
				}
				x, _ := ccl.SliceOf[float32](b)
				y, _ := ccl.SliceOf[float32](from[i])
				copy(x, y)
			}
			require.NoError(t, w.On(t.Context(), ccltest.Split(t, c, 0, c.Rank())))
			require.Equal(t, 7, w.Steps())
			for step := 8; step <= 20; step++ {
				m.step(step)
				_, err := w.Step(t.Context())
				require.NoError(t, err)
				require.Equal(t, step/4-1, w.Stats().Rounds)
			}
			_, err = w.Flush(t.Context())
			require.NoError(t, err)
			require.NoError(t, w.Same(t.Context()))
			require.NoError(t, u.Close())
		})
	}
}

// On gives a rank whose bits have changed those of the others, whichever rank it is.
func TestOnMendsBits(t *testing.T) {
	for odd := range 3 {
		for _, o := range []*outer.Options{{Every: 1}, {Every: 1, Delay: 1, Codec: quant.Int8}, {Every: 1, Delay: 1, Eager: true}} {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := newModel(c.Rank(), 1000)
				u := begun(t, c, m, o)
				advance(t, u)
				_, err := u.Flush(t.Context())
				require.NoError(t, err)
				hash := u.Hash()
				if c.Rank() == odd {
					u.Moments()[0][5]++
				}
				for err == nil {
					_, err = u.Step(t.Context())
				}
				require.ErrorContains(t, err, "hold other bits of the outer parameters than the rest")
				require.NoError(t, u.On(t.Context(), c))
				require.NoError(t, u.Same(t.Context()))
				require.Equal(t, hash, u.Hash())
				advance(t, u)
				_, err = u.Flush(t.Context())
				require.NoError(t, err)
				require.NoError(t, u.Same(t.Context()))
			})
		}
	}
}

// Units without elements, no units, fragments without elements, and one rank.
func TestNothing(t *testing.T) {
	for _, lens := range [][]int{nil, {0}, {0, 1}, {3, 0, 2}} {
		for n, o := range map[int]outer.Options{1: {Every: 3, Fragments: 3, Eager: true, Delay: 2, Codec: quant.Int4}, 2: {Every: 2, Codec: quant.Int8}, 3: {Every: 4, Fragments: 4, Delay: 3}} {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				m := newModel(c.Rank(), lens...)
				u := begun(t, c, m, &o)
				for i := range 9 {
					m.step(i)
					advance(t, u)
				}
				_, err := u.Flush(t.Context())
				require.NoError(t, err)
				require.NoError(t, u.Same(t.Context()))
				require.NoError(t, u.Close())
			})
		}
	}
}

// A rank whose context ends in Step or Flush would skip exchanges that the others begin. So that fails the Comm at once on
// all ranks, as in any blocking call, and On goes on over the next one.
func TestCanceled(t *testing.T) {
	for _, tc := range []struct {
		o     outer.Options
		at    int // the step in which the context of rank 1 has ended
		flush bool
	}{
		{outer.Options{Every: 2}, 2, false},
		{outer.Options{Every: 4, Fragments: 2, Delay: 2}, 6, false},
		{outer.Options{Every: 4, Fragments: 2, Delay: 2}, 5, true},
		{outer.Options{Every: 2, Delay: 1, Codec: quant.Int8}, 5, false},
		{outer.Options{Every: 2, Delay: 1, Codec: quant.Int8}, 5, true},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				m := newModel(c.Rank(), 500, 20)
				d := ccltest.Split(t, c, 0, c.Rank())
				u := begun(t, d, m, &tc.o)
				for step := 1; step < tc.at; step++ {
					m.step(step)
					advance(t, u)
				}
				require.NoError(t, ccl.Barrier(t.Context(), c)) // none is still in On
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.Rank() == 1 {
					cancel()
				}
				call := u.Step
				if tc.flush {
					call = u.Flush
				}
				if c.Rank() != 1 { // nobody takes part in what rank 1 begins
					require.NoError(t, ccl.Barrier(t.Context(), c))
				}
				_, err := call(ctx)
				for range 2 * tc.o.Every { // a call that needed nobody, or what had come already, is well: a later one is not
					if err == nil {
						_, err = u.Step(ctx)
					}
				}
				if c.Rank() == 1 {
					require.NoError(t, ccl.Barrier(t.Context(), c))
				}
				require.ErrorIs(t, err, ccl.ErrAborted)
				require.ErrorContains(t, err, "context canceled")
				next, err := d.Shrink(t.Context())
				require.NoError(t, err)
				defer next.Close()
				require.NoError(t, u.On(t.Context(), next))
				for step := range 9 {
					m.step(step)
					advance(t, u)
				}
				_, err = u.Flush(t.Context())
				require.NoError(t, err)
				require.NoError(t, u.Same(t.Context()))
			})
		})
	}
}

// Restart in the middle of an exchange takes the rank back to the outer parameters, of that exchange too once it ends.
func TestRestartUnderWay(t *testing.T) {
	for _, o := range []*outer.Options{{Every: 2, Delay: 1}, {Every: 2, Delay: 1, Eager: true}} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel(c.Rank(), 300)
			u := begun(t, c, m, o)
			for step := 1; step <= 6; step++ {
				m.step(step)
				advance(t, u)
			}
			u.Restart()
			require.Equal(t, u.Params(), m.units)
			moved, err := u.Flush(t.Context())
			require.NoError(t, err)
			require.True(t, moved)
			require.InDeltaSlice(t, u.Params()[0], m.units[0], 1e-6)
		})
	}
}

// After Loaded all ranks call On: until then the state is nobody's but this rank's, and nothing is exchanged.
func TestLoadedNeedsOn(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel(c.Rank(), 300)
		u := begun(t, c, m, &outer.Options{Every: 2, Delay: 1, Eager: true})
		for step := 1; step <= 4; step++ {
			m.step(step)
			advance(t, u)
		}
		u.Loaded(40) // an exchange is under way
		const want = "outer: the state was loaded: call On, on all ranks"
		for _, f := range []func(context.Context) (bool, error){u.Step, u.Flush} {
			_, err := f(t.Context())
			require.EqualError(t, err, want)
		}
		require.EqualError(t, u.Same(t.Context()), want)
		require.NoError(t, u.On(t.Context(), c))
		require.Equal(t, 40, u.Steps())
		for step := 1; step <= 4; step++ {
			m.step(step)
			advance(t, u)
		}
		_, err := u.Flush(t.Context())
		require.NoError(t, err)
		require.NoError(t, u.Same(t.Context()))
	})
}
