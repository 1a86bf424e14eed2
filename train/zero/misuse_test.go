package zero_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

type model = zero.Model[float32, float32]

// What one rank alone does out of order is an error of its call, and ends the calls of the other at once, with the reason.
func TestMisuseOfOne(t *testing.T) {
	// A call that has no error shows what was wrong in the next one.
	release := func(i int) func(testing.TB, *model) error {
		return func(t testing.TB, m *model) error { m.Release(i); return m.Reduce(0) }
	}
	params := func(i int) func(testing.TB, *model) error {
		return func(t testing.TB, m *model) error { _, err := m.Params(t.Context(), i); return err }
	}
	grads := func(i int) func(testing.TB, *model) error {
		return func(t testing.TB, m *model) error { _, err := m.Grads(t.Context(), i); return err }
	}
	reduce := func(i int) func(testing.TB, *model) error {
		return func(t testing.TB, m *model) error { return m.Reduce(i) }
	}
	short := func(n int) func(testing.TB, *model) error {
		return func(t testing.TB, m *model) error { return m.Short(n) }
	}
	for _, tc := range []struct {
		name   string
		before []func(testing.TB, *model) error
		wrong  func(testing.TB, *model) error
		text   string
	}{
		{"no such unit", nil, params(3), "zero: Params of unit 3; the units are 0 to 2"},
		{"units in use", []func(testing.TB, *model) error{params(0), params(1)}, params(2),
			"zero: Params of unit 2: units [0 1] are in use; Release one of them, or raise Options.Ahead"},
		{"no such unit to release", nil, release(-1), "zero: Release of unit -1; the units are 0 to 2"},
		{"not in use", nil, release(2), "zero: Release of unit 2, which is not in use"},
		{"released twice", []func(testing.TB, *model) error{params(0), func(_ testing.TB, m *model) error { m.Release(0); return nil }}, release(0),
			"zero: Release of unit 0, which is not in use"},
		{"no such gradients", nil, grads(9), "zero: Grads of unit 9; the units are 0 to 2"},
		{"gradients in use", []func(testing.TB, *model) error{grads(0), grads(1)}, grads(2),
			"zero: Grads of unit 2: Reduce one of units [0 1] first; stages 2 and 3 hold at most two"},
		{"gradients after the last", []func(testing.TB, *model) error{grads(1), reduce(1), grads(1), reduce(1)}, grads(1),
			"zero: Grads of unit 1, which was already reduced 2 times in this step"},
		{"reduced before", nil, reduce(2), "zero: Reduce of unit 2 before its Grads"},
		{"reduced too often", []func(testing.TB, *model) error{grads(1), reduce(1), grads(1), reduce(1)}, reduce(1),
			"zero: unit 1 is reduced 3 times in a step of 2 micro batches"},
		{"too short", nil, short(0), "zero: Short: 0 micro batches; a step of this model has 1 to 2"},
		{"not short", nil, short(3), "zero: Short: 3 micro batches; a step of this model has 1 to 2"},
		{"short too late", []func(testing.TB, *model) error{grads(1), reduce(1)}, short(1), "zero: Short: unit 1 was already reduced in this step"},
		{"closed within a step", []func(testing.TB, *model) error{grads(0), reduce(0)},
			func(_ testing.TB, m *model) error {
				m.Close()
				return errors.New("zero: Close within a step: unit 0 is in use, or was reduced")
			},
			"zero: Close within a step: unit 0 is in use, or was reduced"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, 0)
				m := newModel[float32, float32](t, c, [][]int{{32}, {32}, {32}}, &zero.Options{Stage: 3, Micro: 2})
				for i, f := range tc.before {
					require.NoError(t, f(t, m), i)
				}
				ccltest.Barrier(t, world) // until then both do the same
				if c.Rank() == 1 {
					require.EqualError(t, tc.wrong(t, m), tc.text)
				} else {
					hearsOfIt(t, c)
					require.ErrorContains(t, m.Step(t.Context(), noUpdate), "aborted by rank 1: "+tc.text)
				}
				require.NoError(t, m.Close())
				require.NoError(t, m.Close())
				_, err := m.Params(t.Context(), 0)
				require.EqualError(t, err, "zero: the model is closed")
			})
		})
	}
}

// A model without units has short steps as others have.
func TestShortOfNothing(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel[float32, float32](t, c, nil, &zero.Options{Micro: 2})
		require.NoError(t, m.Short(1))
		require.NoError(t, m.Step(t.Context(), noUpdate))
		require.NoError(t, m.Close())
		require.NoError(t, c.Err())
		require.EqualError(t, m.Short(1), "zero: the model is closed")
	})
}

// filled is a model of n alike units at stage 3, element k of unit i being 1000i + k.
func filled(t testing.TB, c *ccl.Comm, n int, o zero.Options) *model {
	o.Stage = 3
	units := make([][]int, n)
	for i := range units {
		units[i] = []int{64}
	}
	m := newModel[float32, float32](t, c, units, &o)
	for i := range units {
		s := m.Shard(i)
		for k := range s {
			s[k] = float32(1000*i + c.Rank()*len(s) + k)
		}
	}
	require.NoError(t, m.Loaded(t.Context()))
	return m
}

// use is Params of unit i of a filled model; what it returns without an error must be unit i.
func use(t testing.TB, m *model, i int) error {
	w, err := m.Params(t.Context(), i)
	if err == nil {
		for k, x := range w[0] {
			require.Equal(t, float32(1000*i+k), x, "Params(%d)[%d]", i, k)
		}
	}
	return err
}

// train ends a step that has no gradients.
func train(t testing.TB, m *model, n int) error {
	for i := range n {
		if _, err := m.Grads(t.Context(), i); err != nil {
			return err
		}
		if err := m.Reduce(i); err != nil {
			return err
		}
	}
	return m.Step(t.Context(), noUpdate)
}

// end has all ranks meet after steps that ended with err. Either all have one, or none.
func end(t testing.TB, world *ccl.Comm, m *model, c *ccl.Comm, err error) (failed bool) {
	if err != nil {
		require.True(t, errors.Is(err, ccl.ErrMismatch) || errors.Is(err, ccl.ErrAborted) || c.Err() != nil, "%v", err)
	}
	// A rank whose last call was alike may have done well; it hears of the failure all the same.
	all := []int32{0}
	if err != nil {
		all[0] = 1
	}
	require.NoError(t, ccl.AllReduce(t.Context(), world, all, all, ccl.Max))
	if failed = all[0] == 1; failed {
		hearsOfIt(t, c)
	}
	require.NoError(t, m.Close())
	c.Close()
	return failed
}

// Ordinary ways in which one rank differs from the others at stage 3. No rank computes with parameters of another unit: what
// does no harm goes on, and the rest is an error on all ranks.
func TestRanksDiffer(t *testing.T) {
	const n = 4
	for _, tc := range []struct {
		way   string
		wrong bool
	}{
		{"alike", false},
		{"one releases a turn later", false},
		{"one holds the last unit", true},
		{"one looks at a unit", true},
		{"one evaluates once more", true},
		{"one reduces in another order", true},
		{"one has a short step", true},
	} {
		for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict} {
			t.Run(fmt.Sprint(tc.way, ", ", check), func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, world.Rank())
					m := filled(t, c, n, zero.Options{Micro: 2})
					odd := c.Rank() == 1
					steps := func() error {
						for step := range 5 {
							once := odd && step == 2
							if once && tc.way == "one looks at a unit" {
								if err := use(t, m, 2); err != nil {
									return err
								}
								m.Release(2)
							}
							for pass := 0; pass < 1 || once && tc.way == "one evaluates once more" && pass < 2; pass++ {
								for i := range n {
									if err := use(t, m, i); err != nil {
										return err
									}
									late := odd && tc.way == "one releases a turn later"
									if late && i > 0 {
										m.Release(i - 1)
									}
									if !late && !(odd && tc.way == "one holds the last unit" && i == n-1) || late && i == n-1 {
										m.Release(i)
									}
								}
							}
							micros := 2
							if once && tc.way == "one has a short step" {
								micros = 1
								if err := m.Short(1); err != nil {
									return err
								}
							}
							for range micros {
								for i := n - 1; i >= 0; i-- {
									at := i
									if once && tc.way == "one reduces in another order" {
										at = n - 1 - i
									}
									if err := use(t, m, i); err != nil {
										return err
									}
									if _, err := m.Grads(t.Context(), at); err != nil {
										return err
									}
									m.Release(i)
									if odd && tc.way == "one holds the last unit" && i == n-1 {
										m.Release(i)
									}
									if err := m.Reduce(at); err != nil {
										return err
									}
								}
							}
							if err := m.Step(t.Context(), noUpdate); err != nil {
								return err
							}
						}
						return nil
					}
					require.Equal(t, tc.wrong, end(t, world, m, c, steps()))
				}, ccltest.Deadline(20*time.Second), ccltest.With(ccl.Options{Check: check}))
			})
		}
	}
}

// Random orders of Params, alike on all ranks, and a random Release on each, with another call by one rank alone in some
// runs. Every unit that Params returns is whole and right, or all ranks get an error.
func TestRandomRelease(t *testing.T) {
	const n = 6
	seeds := 60
	if testing.Short() {
		seeds = 5
	}
	for _, ahead := range []int{1, 2, 3} {
		bad := 0
		for seed := range seeds {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, world.Rank())
				m := filled(t, c, n, zero.Options{Ahead: ahead})
				all := rand.New(rand.NewPCG(uint64(seed), 0))                   // alike
				mine := rand.New(rand.NewPCG(uint64(seed), uint64(c.Rank()+1))) // this rank's
				steps := func() error {
					var held []int
					for step := range 6 {
						var order []int
						for range 2 * n {
							order = append(order, all.IntN(n))
						}
						if step%2 == 1 { // forward, backward
							order = []int{0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0}
						}
						if seed%3 == 1 && mine.IntN(12) == 0 { // what no other rank does
							order = append(order, mine.IntN(n))
						}
						for _, i := range order {
							for len(held) > ahead || len(held) > 0 && mine.IntN(2) == 0 {
								m.Release(held[0])
								held = held[1:]
							}
							if err := use(t, m, i); err != nil {
								return err
							}
							held = append(held, i)
						}
						for _, i := range held {
							m.Release(i)
						}
						held = nil
						if err := train(t, m, n); err != nil {
							return err
						}
					}
					return nil
				}
				if end(t, world, m, c, steps()) && world.Rank() == 0 {
					bad++
				}
			}, ccltest.Deadline(20*time.Second))
		}
		t.Logf("%d ahead: %d of %d runs fail on all ranks", ahead, bad, seeds)
	}
}

// What is loaded at stage 3 takes the place of no slices of Params: they would have another layer's numbers.
func TestLoadOfWhatIsInUse(t *testing.T) {
	const n = 3
	for name, load := range map[string]func(ctx context.Context, m *model) error{
		"Load": func(ctx context.Context, m *model) error {
			return m.Load(ctx, 0, whole([]int{64}, func(k int) float32 { return float32(k) }), 0)
		},
		"Loaded": func(ctx context.Context, m *model) error { return m.Loaded(ctx) },
	} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			m := filled(t, c, n, zero.Options{})
			paramsOf(t, m, 0)
			err := load(t.Context(), m)
			require.ErrorContains(t, err, "zero: unit 0: "+name+": ")
			require.ErrorContains(t, err, "the unit is in use; Release it first")
			_, err = m.Params(t.Context(), 1)
			require.Error(t, err, "whose memory may be that of unit 0")
			ccltest.Barrier(t, world)
			m.Close()
		})
	}
}
