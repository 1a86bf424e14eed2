package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/algo"
)

// A rank that asks hears that all others have closed the Comm: those of its host by its memory, of other hosts by what they say,
// or by having left the job. Before it asks nothing is looked for, and nothing fails.
func TestDeserted(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	j.World.Topo = algo.Placed([]int{0, 1, 0, 2, 0})
	s := j.Site(0)
	s.Here.Host = PrivateHost()
	off, err := s.Here.Host.Alloc(region.Bytes(3))
	require.NoError(t, err)
	mem, err := s.Here.Host.View(off, region.Bytes(3))
	require.NoError(t, err)
	c := new(Member)
	c.Init(s, group.WorldID, group.Members{Stride: 1}, j.World.Topo, 2, region.New(off, mem, 3), Options{})
	c.Enlist()
	defer j.Remove(c)

	c.Fate.deserted.check(c)
	require.Nil(t, c.Fate.deserted.ch, "nobody has asked")
	over := Deserted(c)
	require.Equal(t, over, Deserted(c))
	require.True(t, j.Time.Coarse.Look(), "the monitor is to look")
	look := func(what string, want bool) {
		t.Helper()
		c.Fate.deserted.check(c)
		select {
		case <-over:
			require.True(t, want, what)
		default:
			require.False(t, want, what)
		}
	}
	look("all are there", false)
	leave := func(r int) {
		c.Share.Local.State(r).Store(region.StateClosed)
		c.Share.Local.Left().Add(1)
	}
	leave(0)
	s.deliver(&event.Event{Comm: group.WorldID, Code: uint8(event.HostClosed), Peer: 1, Node: 1})
	look("one of each host", false)
	leave(2)
	look("all of this host", false)
	j.markLeft(2, []int{3})
	look("all", true)
	look("once", true)
	require.Nil(t, c.Fate.Cause())
}

// One that leaves a Comm which has failed there does not make it deserted: the failure says more.
func TestFailedIsNotDeserted(t *testing.T) {
	s := newSite(&Job{World: newMembership()}, 0)
	s.Here.Host = PrivateHost()
	off, err := s.Here.Host.Alloc(region.Bytes(2))
	require.NoError(t, err)
	mem, err := s.Here.Host.View(off, region.Bytes(2))
	require.NoError(t, err)
	c := new(Member)
	c.Init(s, group.WorldID, group.Members{Stride: 1}, algo.Blocks(1, 2), 0, region.New(off, mem, 2), Options{})
	c.Share.Local.Left().Add(1)
	c.Share.Local.State(1).Store(region.StateLeft)
	require.False(t, c.Share.isAlone())
	c.Share.Local.State(1).Store(region.StateClosed)
	require.True(t, c.Share.isAlone())
}
