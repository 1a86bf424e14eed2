package zero_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/zero"
)

// A Step whose context ends has updated some shards already, so it fails the Comm, and no rank trains on.
func TestStepGivesUp(t *testing.T) {
	for stage := range 4 {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			m := newModel[float32, float32](t, c, [][]int{{30}, {40}}, &zero.Options{Stage: stage})
			reduce := func(i int) {
				gradsOf(t, m, i)
				require.NoError(t, m.Reduce(i))
			}
			reduce(1)
			if c.Rank() == 0 {
				reduce(0)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				err := m.Step(ctx, noUpdate)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			hearsOfIt(t, c)
			ccltest.Barrier(t, world)
			require.NoError(t, m.Close())
		})
	}
}

// A Loaded whose context ends leaves the gathers to come to the other ranks alone: it fails the Comms, and none waits.
func TestLoadedGivesUp(t *testing.T) {
	for _, stage := range []int{1, 2} {
		ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, world.Rank()/2, 0)
			replicas := ccltest.Split(t, world, world.Rank()%2, 0)
			m := newModel[float32, float32](t, c, [][]int{{30}, {40}}, &zero.Options{Stage: stage, Replicas: replicas})
			if world.Rank() == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, m.Loaded(ctx), context.DeadlineExceeded)
			}
			if world.Rank() < 2 {
				hearsOfIt(t, c)
				require.ErrorContains(t, c.Err(), "context deadline exceeded")
			}
			if world.Rank()%2 == 0 {
				hearsOfIt(t, replicas)
				require.ErrorContains(t, replicas.Err(), "context deadline exceeded")
			}
			ccltest.Barrier(t, world)
			require.NoError(t, m.Close())
		})
	}
}

// Params that fail because their context ends may be called again: what this rank gathers ahead in the next step is what
// the others do.
func TestParamsGiveUp(t *testing.T) {
	units, gaveUp := [][]int{{30}, {400}, {50}, {6000}}, make(chan struct{})
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel[float32, float32](t, c, units, &zero.Options{Stage: 3})
		for step := range 3 {
			forward(t, m, len(units))
			for i := len(units) - 1; i >= 0; i-- {
				if late := step == 0 && i == 2; late && c.Rank() == 1 {
					<-gaveUp
				} else if late {
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					for range 3 {
						_, err := m.Params(ctx, i)
						require.ErrorIs(t, err, context.Canceled)
					}
					close(gaveUp)
				}
				paramsOf(t, m, i)
				gradsOf(t, m, i)
				m.Release(i)
				require.NoError(t, m.Reduce(i))
			}
			require.NoError(t, m.Step(t.Context(), noUpdate))
		}
		require.NoError(t, m.Close())
	})
}

// A rank that is lost in New is an error of a Comm on all others, also on those that share only NormOver with those that
// hear of it: a program can tell it from wrong arguments by its code.
func TestLostInNew(t *testing.T) {
	for call := 9; call <= 12; call++ { // after those of mesh.New
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "dp", Size: 2}, mesh.Dim{Name: "pp", Size: 2})
			require.NoError(t, err)
			defer m.Close()
			z, err := zero.New[float32, float32](t.Context(), m.Comm("dp"), [][]int{{30}}, &zero.Options{NormOver: m.Comm("pp")})
			if err == nil { // it was lost after this rank's last call
				require.NoError(t, z.Close())
				<-c.Done()
				err = c.Err()
			}
			require.True(t, errors.Is(err, ccl.ErrRankLost) || errors.Is(err, ccl.ErrAborted), "call %d: %v", call, err)
			require.Regexp(t, `world rank 3\)? lost|rank 3 lost`, err.Error())
		}, ccltest.Kill(3, call))
	}
}
