package ccltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// trainingLoop stands for a user's: it goes on with fewer ranks when one is lost, from
// the step that is furthest: a rank may have ended a step in which others have failed.
func trainingLoop(t testing.TB, c *ccl.Comm, steps int) (ranks int, err error) {
	for step := 0; step < steps; {
		grad := []float32{1}
		err := ccl.AllReduce(t.Context(), c, grad, grad, ccl.Sum)
		if err == nil {
			step++
			continue
		}
		if !errors.Is(err, ccl.ErrRankLost) {
			return 0, err
		}
		if c, err = c.Shrink(t.Context()); err != nil {
			return 0, err
		}
		defer c.Close()
		at := []int{step}
		if err := ccl.AllReduce(t.Context(), c, at, at, ccl.Max); err != nil {
			return 0, err
		}
		step = at[0]
	}
	return c.Size(), nil
}

// How does a training loop take the loss of a rank in step 10?
func ExampleKill() {
	_ = func(t *testing.T) { // a test
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			ranks, err := trainingLoop(t, c, 100)
			require.NoError(t, err)
			require.Equal(t, 3, ranks)
		}, ccltest.Kill(2, 10), ccltest.VirtualTime())
	}
}

// What does it say when a rank hangs? Here ten minutes pass in an instant.
func ExampleStall() {
	_ = func(t *testing.T) { // a test
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			_, err := trainingLoop(t, c, 100)
			require.ErrorIs(t, err, ccl.ErrTimeout)
		}, ccltest.Stall(2, 10, -1), ccltest.VirtualTime(), ccltest.Deadline(time.Hour))
	}
}

// A rank that is cut off hears that the others are lost, and they that it is.
func ExamplePartition() {
	_ = func(t *testing.T) { // a test
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			ranks, err := trainingLoop(t, c, 100)
			if c.Rank() != 2 {
				require.NoError(t, err)
				require.Equal(t, 3, ranks)
			}
		}, ccltest.Partition(2, 10), ccltest.VirtualTime(),
			ccltest.With(ccl.Options{PeerTimeout: 5 * time.Second}))
	}
}

// The examples above, run.
func TestExamples(t *testing.T) {
	for name, fault := range map[string]ccltest.Option{"kill": ccltest.Kill(2, 10), "partition": ccltest.Partition(2, 10)} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				ranks, err := trainingLoop(t, c, 100)
				if c.Rank() != 2 {
					require.NoError(t, err)
					require.Equal(t, 3, ranks)
				}
			}, fault, ccltest.VirtualTime(), ccltest.Deadline(10*time.Minute), ccltest.With(ccl.Options{PeerTimeout: 5 * time.Second, Timeout: time.Minute}))
		})
	}
}
