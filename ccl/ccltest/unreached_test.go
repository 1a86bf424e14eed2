package ccltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// Two ranks that do not reach each other say so, though the connections of a call are made at once, and their neighbors, which
// reach all, wait for them.
func TestUnreachedIsNamed(t *testing.T) {
	cut := func(_ context.Context, n *simnet.Net) {
		time.Sleep(9 * time.Second)
		n.Cut(0, 3, true)
		n.Cut(3, 0, true)
	}
	begin := time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC) // by the clock of the bubble
	ccltest.Run(t, 6, func(t testing.TB, c *ccl.Comm) {
		late := time.Second
		if c.Rank() == 0 || c.Rank() == 3 {
			late = 0
		}
		time.Sleep(time.Until(begin.Add(late)))
		err := ccl.AllToAll(t.Context(), c, make([]float32, 60), make([]float32, 60))
		require.ErrorIs(t, err, ccl.ErrTimeout)
		require.Regexp(t, `on rank 0: no answer from world rank 3|on rank 3: no answer from world rank 0`, err.Error())
		require.Less(t, time.Since(begin), 4*time.Second)
	}, ccltest.Hosts(6), ccltest.With(ccl.Options{Timeout: 3 * time.Second}), ccltest.World(1, simnet.Link{Delay: 10 * time.Millisecond}, cut))
}
