package zero_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/zero"
)

func TestBadOptions(t *testing.T) {
	for _, tc := range []struct {
		mine, other zero.Options // other: of rank 1
		text        string
	}{
		{zero.Options{Stage: 4}, zero.Options{Stage: 4}, "zero: stage 4; the stages are 0 to 3"},
		{zero.Options{Micro: -1}, zero.Options{Micro: -1}, "zero: -1 micro batches, 1 units ahead; both must be at least 1"},
		{zero.Options{Clip: -1}, zero.Options{Clip: -1}, "zero: gradients cannot be clipped to a norm of -1"},
		{zero.Options{Stage: 1}, zero.Options{Stage: 2}, "zero: ranks differ: rank 0 has stage 1, rank 1 has stage 2"},
		{zero.Options{Stage: 1}, zero.Options{Stage: 9}, "zero: rank 1: stage 9; the stages are 0 to 3"},
		{zero.Options{Micro: 2}, zero.Options{Micro: 3}, "zero: ranks differ: rank 0 has Micro 2, rank 1 has Micro 3"},
		{zero.Options{Ahead: 2}, zero.Options{}, "zero: ranks differ: rank 0 has Ahead 2, rank 1 has Ahead 1"},
		{zero.Options{Clip: .5}, zero.Options{Clip: .25}, "zero: ranks differ: rank 0 has Clip 0.5, rank 1 has Clip 0.25"},
		{zero.Options{}, zero.Options{ReduceMaster: true}, "zero: ranks differ: rank 0 has ReduceMaster false, rank 1 has ReduceMaster true"},
		{zero.Options{Ahead: -1}, zero.Options{}, "zero: rank 0: 1 micro batches, -1 units ahead; both must be at least 1"},
		{zero.Options{}, zero.Options{Clip: math.NaN()}, "zero: rank 1: gradients cannot be clipped to a norm of NaN"},
	} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			o := tc.mine
			if c.Rank() == 1 {
				o = tc.other
			}
			_, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}}, &o)
			require.EqualError(t, err, tc.text)
		})
	}
	for _, tc := range []struct {
		set  func(o *zero.Options, c *ccl.Comm)
		text string
	}{
		{func(o *zero.Options, c *ccl.Comm) { o.Replicas = c }, "zero: Replicas: ranks differ: rank 0 has shard 0 of 2, rank 1 has shard 1 of 2"},
		{func(o *zero.Options, c *ccl.Comm) {
			if c.Rank() == 1 {
				o.NormOver = c
			}
		}, "zero: ranks differ: rank 0 has NormOver false, rank 1 has NormOver true"},
		{func(o *zero.Options, c *ccl.Comm) {
			if c.Rank() == 0 {
				o.Replicas = c
			}
		}, "zero: ranks differ: rank 0 has Replicas true, rank 1 has Replicas false"},
	} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			o := zero.Options{Stage: 2}
			tc.set(&o, c)
			_, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}}, &o)
			require.EqualError(t, err, tc.text)
			ccltest.Barrier(t, world)
		})
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}, {4 + c.Rank()}}, nil)
		require.EqualError(t, err, "zero: ranks differ: rank 0 has unit 1 with parameters of [4], rank 1 has unit 1 with parameters of [5]")
		_, err = zero.New[float32, ccl.BFloat16](t.Context(), c, [][]int{{3}}, nil)
		require.EqualError(t, err, "zero: master copies of bfloat16 are narrower than parameters of float")
	})
}

// Replicas that are wired wrongly for some shards only: no rank has a model.
func TestReplicasWrongForSome(t *testing.T) {
	ccltest.Run(t, 6, func(t testing.TB, world *ccl.Comm) {
		replica, shard := world.Rank()/3, world.Rank()%3
		c := ccltest.Split(t, world, replica, shard)
		line := shard
		if replica == 1 && shard > 0 {
			line = 3 - shard
		}
		across := ccltest.Split(t, world, line, replica)
		_, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}}, &zero.Options{Stage: 2, Replicas: across})
		require.ErrorContains(t, err, "Replicas: ranks differ: rank 0 has shard ")
		require.NotContains(t, err.Error(), "zero: zero: ")
		ccltest.Barrier(t, world)
	}, ccltest.Deadline(20*time.Second))
}

// full is memory of which none is left.
type full struct{ zero.Memory }

func (full) Alloc(ccl.Type, int) (ccl.Buf, error) { return ccl.Buf{}, errors.New("out of memory") }

// A rank that cannot allocate its model fails New on all ranks, and the Comms over which others would wait for these.
func TestNoMemoryIsTold(t *testing.T) {
	for _, norm := range []bool{true, false} {
		ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, world.Rank()/2, 0)
			across := ccltest.Split(t, world, world.Rank()%2, 0)
			o := &zero.Options{Stage: 2, NormOver: across}
			if !norm {
				o.NormOver, o.Replicas = nil, across
			}
			if world.Rank() == 0 {
				o.Memory = full{}
			}
			m, err := zero.New[float32, float32](t.Context(), c, [][]int{{3}}, o)
			if world.Rank() < 2 {
				require.ErrorContains(t, err, "zero: rank 0: no memory for the model: out of memory")
			}
			select {
			case <-across.Done():
				require.ErrorContains(t, across.Err(), "zero: rank 0: no memory for the model: out of memory")
			case <-time.After(10 * time.Second):
				t.Error("the other Comm has not failed")
			}
			ccltest.Barrier(t, world) // until then all Comms are open
			if err == nil {
				require.NoError(t, m.Close())
			}
		}, ccltest.Deadline(30*time.Second))
	}
}

// What Release drops at stage 3 is NaN with Poison, so that a use after it shows; before, and at other stages, the slices
// hold the parameters.
func TestUseAfterRelease(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		for stage := range 4 {
			c := ccltest.Split(t, world, 0, 0)
			m := newModel[float32, float32](t, c, [][]int{{30, 2}, {40}, {50}}, &zero.Options{Stage: stage, Poison: true})
			for i := range 3 {
				for k := range m.Shard(i) {
					m.Shard(i)[k] = float32(i + 1)
				}
			}
			require.NoError(t, m.Loaded(ctx))
			w := paramsOf(t, m, 0)
			paramsOf(t, m, 0) // in use twice
			m.Release(0)
			require.Equal(t, slices.Repeat([]float32{1}, 30), w[0], "stage %d", stage)
			m.Release(0)
			for _, x := range slices.Concat(w[0], w[1]) {
				require.Equal(t, stage == 3, x != x, "stage %d: %v", stage, x)
			}
			w = paramsOf(t, m, 0)
			require.Equal(t, []float32{1, 1}, w[1], "gathered anew")
			m.Release(0)
			require.NoError(t, ccl.Barrier(ctx, world)) // both have gathered
			m.Release(0)
			_, err := m.Params(ctx, 1)
			require.EqualError(t, err, "zero: Release of unit 0, which is not in use")
			require.NoError(t, m.Close())
		}
	})
}

// Gradients each of which has a finite square, while the sum of them is infinite, belong to no unit.
func TestNotFiniteTogether(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		for _, over := range []*ccl.Comm{nil, c} {
			m := newModel[float64, float64](t, c, [][]int{{1}, {1}}, &zero.Options{NormOver: over})
			backward(t, m, 2, func(_ int, g [][]float64) { g[0][0] = 1.3e154 }) // whose square is finite
			err := m.Step(t.Context(), noUpdate)
			require.EqualError(t, err, "zero: Step: all units together: "+zero.ErrNotFinite.Error())
			require.NoError(t, m.Close())
		}
	})
}

// Without an Update there is no step, and after a failure the Comm's cause is told, not what was left undone for it.
func TestStepWithout(t *testing.T) {
	for _, failed := range []bool{false, true} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			ctx := t.Context()
			c := ccltest.Split(t, world, 0, 0)
			m := newModel[float32, float32](t, c, [][]int{{30}}, &zero.Options{Stage: 3})
			require.NoError(t, ccl.Barrier(ctx, world)) // all have a model before the Comm fails
			if failed {
				if c.Rank() == 1 {
					c.Abort(errors.New("a test"))
				}
				<-c.Done()
				require.ErrorContains(t, m.Step(ctx, nil), "a test")
			} else {
				backward(t, m, 1, noGrads)
				require.ErrorContains(t, m.Step(ctx, nil), "zero: Step: the Update is nil")
			}
			require.NoError(t, m.Close())
			require.NoError(t, ccl.Barrier(ctx, world))
		})
	}
}

// A unit that one rank has not reduced, and an update that fails there, end the step on all.
func TestStepFailsOnAll(t *testing.T) {
	for _, update := range []bool{false, true} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			d := ccltest.Split(t, c, 0, 0)
			m := newModel[float32, float32](t, d, [][]int{{30}, {40}}, &zero.Options{Stage: 1})
			require.NoError(t, ccl.Barrier(ctx, c)) // all have a model before d fails
			for i := 1; i >= 0; i-- {
				if update || i == 1 || c.Rank() == 0 {
					require.NoError(t, m.Reduce(i))
				}
			}
			err := m.Step(ctx, func(p zero.Piece, _, _ []float32) error {
				if c.Rank() == 1 && p.Unit == 0 {
					return errors.New("a test")
				}
				return nil
			})
			for i := 0; err == nil && i < 2; i++ {
				_, err = m.Params(ctx, i)
			}
			if update {
				require.ErrorContains(t, err, "a test")
			} else {
				require.ErrorContains(t, err, "units [0] were not reduced 1 times; unit 0 0 times")
			}
			require.NoError(t, m.Close())
		})
	}
}

// More units ahead than there are take no more memory than all of them, and are all in use at once.
func TestAllAhead(t *testing.T) {
	for _, ahead := range []int{2, 3, 1000, math.MaxInt - 1, math.MaxInt} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel[float32, float32](t, c, [][]int{{64}, {64}, {64}}, &zero.Options{Stage: 3, Ahead: ahead})
			require.Equal(t, int64(3*64*4+2*64*4), m.Bytes().Buffers, "of parameters and of gradients, Ahead %d", ahead)
			for range 2 {
				for i := range 3 {
					paramsOf(t, m, i)
				}
				for i := 2; i >= 0; i-- {
					gradsOf(t, m, i)
					m.Release(i)
					require.NoError(t, m.Reduce(i))
				}
				require.NoError(t, m.Step(t.Context(), noUpdate))
			}
			require.NoError(t, m.Close())
		})
	}
}
