package plane

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// ranks are the ranks of the world on one host, all in this process, whose monitor does not run. They begin with opt.
func ranks(t *testing.T, n int, opt Options) []*Member {
	t.Helper()
	j := EnterJob(t.Name(), 0)
	j.World.Topo = algo.Flat(n)
	s := j.Site(0)
	s.Here.Procs, s.Here.Host = make([]int, n), PrivateHost()
	local := regionOn(t, s, n)
	all := make([]*Member, n)
	for r := range all {
		all[r] = &Member{}
		all[r].Init(s, group.WorldID, group.Members{Stride: 1}, j.World.Topo, r, local, opt)
		all[r].Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(c)
			c.Fate.cancel()
		}
		j.Leave()
	})
	return all
}

// ofTwo returns rank 0's Member in the world of a job that has two ranks on one host. The job ends with the test.
func ofTwo(t *testing.T, limit time.Duration, opt Options) *Member {
	t.Helper()
	j := EnterJob(t.Name(), limit)
	t.Cleanup(j.Leave)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, 2), 1), PrivateHost()
	return memberOf(t, s, group.WorldID, 0, opt)
}

// regionOn is new memory for n ranks of a Comm on the host of s.
func regionOn(t *testing.T, s *Site, n int) *region.Region {
	t.Helper()
	off, err := s.Here.Host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := s.Here.Host.View(off, region.Bytes(n))
	require.NoError(t, err)
	return region.New(off, mem, n)
}

// memberOf is a rank of the world on the host of s, and its end of a new Comm of all ranks, until the test ends.
func memberOf(t *testing.T, s *Site, id uint64, rank int, opt Options) *Member {
	t.Helper()
	c := new(Member)
	c.Init(s, id, group.Members{Stride: 1}, s.Job.World.Topo, rank, regionOn(t, s, s.Job.World.Topo.Locals(s.Here.Node)), opt)
	c.Enlist()
	t.Cleanup(func() { s.Job.Remove(c) })
	return c
}

// enter has c make a collective of that kind.
func enter(c *Member, kind call.Kind) {
	k := call.Call{Head: op.Head{Record: call.Record{Kind: kind, Count: 1, Seq: c.Order.Calls + 1}}}
	k.Seal()
	c.Order.Enter(&k)
}

// sleeps has c sleep in the collective that it has made last, since that coarse time; peer is whom it waits for.
func sleeps(c *Member, kind call.Kind, peer int, since int64) {
	c.Current.began = since
	c.noteSleep(&call.Call{Head: op.Head{Record: call.Record{Kind: kind, Seq: c.Order.Calls}}}, &Waiter{}, peer)
}

// What a rank can see of the others in the memory of its host.
func TestShared(t *testing.T) {
	all := ranks(t, 3, Options{})
	c := all[0]
	require.Nil(t, c.Share.closedPeer(-1))
	require.False(t, c.Share.HasLeft(2))
	c.Share.Local.State(2).Store(region.StateClosed)
	require.Equal(t, 2, c.Share.closedPeer(-1).Peer)
	require.Equal(t, 2, c.Share.closedPeer(2).Peer)
	require.Nil(t, c.Share.closedPeer(1), "it does not wait for that one")
	require.True(t, c.Share.HasLeft(2))
	c.Share.Local.State(2).Store(region.StateLeft)
	require.False(t, c.Share.HasLeft(2), "after a failure it does not leave in order")

	require.Equal(t, -1, c.Share.Unexplained(time.Second).Peer)
	c.Share.Local.Abort().Store(1 + 2)
	f := c.Share.Unexplained(time.Second)
	require.Equal(t, []any{call.Aborted, 2}, []any{f.Code, f.Peer})
	require.EqualError(t, f.Err, "the Comm has failed there, and why has not been said for 1s")
	c.Share.Local.Abort().Store(9)
	require.Equal(t, -1, c.Share.Unexplained(time.Second).Peer, "no rank is that")

	require.Empty(t, c.Share.Apart())
	c.Share.SetApart("rank 1: no")
	require.Equal(t, "rank 1: no", c.Share.Apart())
}

// Each sleeper is rung once, by a rank that it sleeps for, or when all are rung.
func TestClaimSleepers(t *testing.T) {
	all := ranks(t, 4, Options{})
	c := all[0]
	require.Nil(t, c.Share.ClaimSleepers(), "nobody sleeps")
	c.Share.Local.Sleepers().Store(3)
	c.Share.Local.Bell(0).Store(BellAnyone)
	c.Share.Local.Bell(1).Store(BellFrom + 2)
	c.Share.Local.Bell(2).Store(BellFrom + 0)
	c.Share.Local.Bell(3).Store(BellAnyone)
	require.False(t, c.Share.claimRing(0, false), "itself")
	require.False(t, c.Share.claimRing(1, false), "it sleeps until rank 2 posts")
	require.True(t, c.Share.claimRing(2, false))
	require.False(t, c.Share.claimRing(2, false), "claimed")
	require.True(t, c.Share.claimRing(3, false))
	require.Equal(t, []int{1}, c.Share.ClaimSleepers())
	require.Empty(t, c.Share.ClaimSleepers())
	require.EqualValues(t, BellAnyone, c.Share.Local.Bell(0).Load())
}

// A rank that waits for all posts of a round is rung by the last of them, once, and by nobody before; also where others have gone on.
func TestLastPostRings(t *testing.T) {
	all := ranks(t, 4, Options{})
	c := all[0]
	post := func(r int, round uint32) { atomic.StoreUint64(c.Share.Local.Flag(r, round), uint64(round)<<32) }
	const round = 1<<32 - 3 // numbers of rounds wrap
	c.Share.Local.Sleepers().Store(1)
	rung := func() bool { return c.Share.Local.Bell(0).Load() == bellAwake }
	for i := range uint32(5) {
		now := uint32(round) + i
		if now == 0 {
			continue // there it is rung by each
		}
		for r := range 4 {
			post(r, now-c.Share.Local.Depth)
		}
		post(0, now)
		c.Share.Local.Bell(0).Store(uint64(now)<<32 | BellAll)
		for _, r := range []int{2, 1} {
			post(r, now)
			all[r].Wake()
			require.False(t, rung(), "round %d: after rank %d", now, r)
		}
		post(3, now)
		all[1].Wake() // whoever sees it
		require.True(t, rung(), "round %d", now)
	}
	c.Share.Local.Sleepers().Store(0)
}

// A Comm closed or failed on a rank is gone for the questions that other goroutines ask.
func TestGone(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	enter(c, call.Barrier)
	other := call.Record{Place: 1, Hash: 7, Kind: call.Barrier}
	require.True(t, c.Share.contradicts(&other))
	require.NotNil(t, c.Share.parties(1))
	c.Share.gone = true
	require.False(t, c.Share.contradicts(&other))
	require.Nil(t, c.Share.parties(1))
	require.True(t, c.Share.HasLeft(1))
	require.Nil(t, c.Odd())
	_, _, ok := c.Standing.status(0)
	require.False(t, ok)
}
