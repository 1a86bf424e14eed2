package reach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// ranksOn are n ranks of this process on host h.
func ranksOn(t *testing.T, n int, h *shm.Host) []*Reach {
	t.Helper()
	j := plane.EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Topo, s.Host = plane.Topology(make([]int, n), 1), h
	off, err := h.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := h.View(off, region.Bytes(n))
	require.NoError(t, err)
	all := make([]*Reach, n)
	for r := range all {
		all[r] = &Reach{Pids: make([]int32, n), Agreed: Agreed{All: !h.Shared()}}
		all[r].Member.Init(s, plane.WorldID, plane.Members{Stride: 1}, s.Topo, r, region.New(off, mem, n), plane.Options{})
		all[r].Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(&c.Member)
		}
		s.Host = plane.PrivateHost()
		j.Leave()
	})
	return all
}

// Memory of other processes is read where it pays, in all calls among ranks with a core each, unless the user says otherwise.
func TestWouldRead(t *testing.T) {
	defer func(asked string, cpu tuning.Family) { askedToRead, tuning.CPU = asked, cpu }(askedToRead, tuning.CPU)
	c := ranksOn(t, 1, plane.PrivateHost())[0]
	cores := c.Site.Host.Processors()
	const from = 1000
	for _, tc := range []struct {
		asked      string
		pays       bool // in all calls
		moved      int
		ranks      int
		all, moves bool
		least      int // bytes of a message that is read; 0: none is
	}{
		{"", true, 0, cores, true, true, 1},
		{"", true, 0, cores + 1, false, false, 0},
		{"", true, from, cores + 1, false, true, from},
		{"", false, 0, cores, false, false, 0},
		{"", false, from, cores, false, true, from},
		{"1", false, 0, cores + 1, true, true, 1},
		{"0", true, from, cores, false, false, 0},
	} {
		askedToRead, tuning.CPU.ReadOthers, tuning.CPU.ReadMovedFrom, c.N = tc.asked, tc.pays, tc.moved, tc.ranks
		all, moves := c.WouldRead()
		assert.Equal(t, []bool{tc.all, tc.moves}, []bool{all, moves}, "%+v", tc)
		for _, n := range []int{1, from - 1, from, 1 << 30} {
			assert.Equal(t, tc.least > 0 && n >= tc.least, c.WouldReadMessage(n), "%+v, %d bytes", tc, n)
		}
	}
	c.N = 1
}

// A rank touches nothing after its Comm has failed, and says why.
func TestInterruptedNow(t *testing.T) {
	c := ranksOn(t, 2, plane.PrivateHost())[0]
	require.Nil(t, c.InterruptedNow())
	cause := call.NewFault(call.RankLost, 1, "its process ended")
	require.True(t, c.FailHere(cause))
	assert.Same(t, cause, c.InterruptedNow())
	_, f := c.here(&shm.Span{At: 4096})
	assert.Same(t, cause, f, "nothing is touched after a failure")
}
