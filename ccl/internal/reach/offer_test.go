package reach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/ranktest"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// ranksOn are n ranks of this process on host h.
func ranksOn(t *testing.T, n int, h *shm.Host) []*Reach {
	t.Helper()
	return ranktest.Of(t, n, h, plane.Options{}, func(m *plane.Member) *Reach {
		c := &Reach{Pids: make([]int32, n), Known: Agreed{All: !h.Shared()}}
		c.Init(m)
		return c
	})
}

// A rank touches nothing after its Comm has failed, and says why.
func TestInterruptedNow(t *testing.T) {
	c := ranksOn(t, 2, plane.PrivateHost())[0]
	require.Nil(t, c.InterruptedNow())
	cause := call.NewFault(call.RankLost, 1, "its process ended")
	require.True(t, c.rank.FailHere(cause))
	assert.Same(t, cause, c.InterruptedNow())
	_, f := c.here(&shm.Span{At: 4096})
	assert.Same(t, cause, f, "nothing is touched after a failure")
}
