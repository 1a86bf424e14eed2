package reach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// ranksOn are n ranks of this process on host h.
func ranksOn(t *testing.T, n int, h *shm.Host) []*Reach {
	t.Helper()
	j := plane.EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, n), 1), h
	off, err := h.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := h.View(off, region.Bytes(n))
	require.NoError(t, err)
	all := make([]*Reach, n)
	for r := range all {
		m := new(plane.Member)
		m.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, r, region.New(off, mem, n), plane.Options{})
		all[r] = &Reach{Pids: make([]int32, n), Known: Agreed{All: !h.Shared()}}
		all[r].Init(m)
		m.Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(c.rank)
		}
		s.Here.Host = plane.PrivateHost()
		j.Leave()
	})
	return all
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
