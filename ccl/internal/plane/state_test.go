package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// ranks are the ranks of the world on one host, all in this process, whose monitor does not run. They begin with opt.
func ranks(t *testing.T, n int, opt Options) []*Member {
	t.Helper()
	j := EnterJob(t.Name(), 0)
	j.Topo = algo.Flat(n)
	s := j.Site(0)
	s.Procs, s.Host = make([]int, n), PrivateHost()
	off, err := s.Host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := s.Host.View(off, region.Bytes(n))
	require.NoError(t, err)
	local := region.New(off, mem, n)
	all := make([]*Member, n)
	for r := range all {
		all[r] = &Member{}
		all[r].Init(s, WorldID, Members{Stride: 1}, j.Topo, r, local, opt)
		all[r].Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(c)
			c.Cancel()
		}
		j.Leave()
	})
	return all
}

// enter has c make a collective of that kind.
func enter(c *Member, kind call.Kind) {
	k := call.Call{Head: op.Head{Record: call.Record{Kind: kind, Count: 1, Seq: c.Calls + 1, Number: c.Calls + 1}}}
	k.Seal()
	c.Enter(&k)
}

// sleeps has c sleep in the collective that it has made last, since that coarse time; peer is whom it waits for.
func sleeps(c *Member, kind call.Kind, peer int, since int64) {
	c.Began = since
	c.noteSleep(&call.Call{Head: op.Head{Record: call.Record{Kind: kind, Seq: c.Calls}}}, &Waiter{}, peer)
}

// What a rank can see of the others in the memory of its host.
func TestShared(t *testing.T) {
	all := ranks(t, 3, Options{})
	c := all[0]
	require.Nil(t, c.closedPeer(-1))
	require.False(t, c.HasLeft(2))
	c.Local.State(2).Store(region.StateClosed)
	require.Equal(t, 2, c.closedPeer(-1).Peer)
	require.Equal(t, 2, c.closedPeer(2).Peer)
	require.Nil(t, c.closedPeer(1), "it does not wait for that one")
	require.True(t, c.HasLeft(2))
	c.Local.State(2).Store(region.StateLeft)
	require.False(t, c.HasLeft(2), "after a failure it does not leave in order")

	require.Equal(t, -1, c.Unexplained(time.Second).Peer)
	c.Local.Abort().Store(1 + 2)
	f := c.Unexplained(time.Second)
	require.Equal(t, []any{call.Aborted, 2}, []any{f.Code, f.Peer})
	require.EqualError(t, f.Err, "the Comm has failed there, and why has not been said for 1s")
	c.Local.Abort().Store(9)
	require.Equal(t, -1, c.Unexplained(time.Second).Peer, "no rank is that")

	require.Empty(t, c.Apart())
	c.SetApart("rank 1: no")
	require.Equal(t, "rank 1: no", c.Apart())
}

// Each sleeper is rung once, by a rank that it sleeps for, or when all are rung.
func TestClaimSleepers(t *testing.T) {
	all := ranks(t, 4, Options{})
	c := all[0]
	require.Nil(t, c.ClaimSleepers(), "nobody sleeps")
	c.Local.Sleepers().Store(3)
	c.Local.Bell(0).Store(BellAnyone)
	c.Local.Bell(1).Store(BellFrom + 2)
	c.Local.Bell(2).Store(BellFrom + 0)
	c.Local.Bell(3).Store(BellAnyone)
	require.False(t, c.claimRing(0, false), "itself")
	require.False(t, c.claimRing(1, false), "it sleeps until rank 2 posts")
	require.True(t, c.claimRing(2, false))
	require.False(t, c.claimRing(2, false), "claimed")
	require.True(t, c.claimRing(3, false))
	require.Equal(t, []int{1}, c.ClaimSleepers())
	require.Empty(t, c.ClaimSleepers())
	require.EqualValues(t, BellAnyone, c.Local.Bell(0).Load())
}

// A Comm closed or failed on a rank is gone for the questions that other goroutines ask.
func TestGone(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	enter(c, call.Barrier)
	other := call.Record{Seq: 1, Hash: 7, Kind: call.Barrier}
	require.True(t, c.contradicts(&other))
	require.NotNil(t, c.parties(1))
	c.Gone = true
	require.False(t, c.contradicts(&other))
	require.Nil(t, c.parties(1))
	require.True(t, c.HasLeft(1))
	require.Nil(t, c.Odd())
	_, _, ok := c.status(0)
	require.False(t, ok)
}
