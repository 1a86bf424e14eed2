package plane

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
)

// oneOf is rank 0 of a Comm of three ranks, one a host, or all on one.
func oneOf(t *testing.T, hosts []int, busy *bool) *Member {
	j := &Job{comms: comms{}}
	j.Time.Coarse.Start()
	s := newSite(j, 0)
	s.Here.Host = PrivateHost()
	t.Cleanup(func() { s.Here.Host.Close() })
	topo := algo.Placed(hosts)
	j.World.Topo = topo
	c := new(Member)
	n := topo.Locals(0)
	c.Init(s, 11, group.Members{Stride: 1}, topo, 0, region.New(0, shm.Aligned(region.Bytes(n)), n), Options{Hooks: Hooks{Busy: func() bool { return *busy }}})
	j.comms.add(c)
	return c
}

// A call under way outlives the end of a process between hosts; where there is no call, within a host, and where the loss is
// no end of a process, the Comm fails at once.
func TestOutlive(t *testing.T) {
	ended := call.NewFault(call.RankLost, 1, "its process ended")
	for _, tc := range []struct {
		name  string
		hosts []int
		busy  bool
		lives bool
	}{
		{"a call between hosts", []int{0, 1, 2}, true, true},
		{"no call", []int{0, 1, 2}, false, false},
		{"one host", []int{0, 0, 0}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			busy := tc.busy
			c := oneOf(t, tc.hosts, &busy)
			require.Equal(t, tc.lives, c.Standing.outlive(ended))
			require.Equal(t, tc.lives, c.Fate.Outlived() != nil)
			require.Nil(t, c.Fate.Failure())
			if !tc.lives {
				return
			}
			require.Same(t, ended, c.Fate.proposal.Load(), "no call begins any more")
			require.True(t, c.Standing.outlive(call.NewFault(call.RankLost, 2, "its process ended")), "the first counts")
			c.endLastCall(0)
			require.Nil(t, c.Fate.Failure(), "while it moves")
			busy = false
			c.endLastCall(0)
			require.Same(t, ended, c.Fate.Failure())
			require.Zero(t, c.Share.Local.Abort().Load(), "other ranks of the host go on with theirs")
		})
	}
}

// What is decided after an end that the call under way has outlived is not the cause, whatever it is and whoever finds it: the ranks
// that were in no call have failed by that end. A loss is told as a later one all the same.
func TestFirstCauseStands(t *testing.T) {
	fails := func(code call.Code, peer int) event.Event {
		e := event.New(11, code, peer, 2, 0, errors.New("later"))
		e.Stage = event.Decided
		return e
	}
	suspected := event.New(0, call.RankLost, 2, -1, 0, errors.New("its host has been silent"))
	own := event.New(0, call.RankLost, 0, -1, 0, errors.New("its process was silent"))
	canceled, aborted, timeout := fails(call.Canceled, 2), fails(call.Aborted, 2), fails(call.Timeout, 1)
	for _, tc := range []struct {
		name  string
		after func(c *Member)
		later int // losses that are told beside the cause
	}{
		{"a canceled context of another rank", func(c *Member) { c.Site.Job.failMember(c, &canceled) }, 0},
		{"an Abort of another rank", func(c *Member) { c.Site.Job.failMember(c, &aborted) }, 0},
		{"a timeout", func(c *Member) { c.Site.Job.failMember(c, &timeout) }, 0},
		{"a loss that is suspected", func(c *Member) { c.Site.Job.failMember(c, &suspected) }, 1},
		{"its own loss", func(c *Member) { c.Site.Job.failMember(c, &own) }, 0},
		{"its own canceled context, where nothing is decided", func(c *Member) { c.FailHere(&call.Fault{Code: call.Canceled}) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			busy, later := true, 0
			c := oneOf(t, []int{0, 1, 2}, &busy)
			c.Hooks.OnFail = func(f *call.Fault, after bool) {
				if after {
					require.Equal(t, 2, f.Peer)
					later++
				} else {
					require.Equal(t, 1, f.Peer)
				}
			}
			lost := event.New(0, call.RankLost, 1, -1, 1, watch.ErrEnded)
			lost.Loss = event.Certain
			c.Site.Job.failMember(c, &lost)
			ended := c.Fate.Outlived()
			require.NotNil(t, ended)
			require.Nil(t, c.Fate.Failure(), "its call goes on")
			tc.after(c)
			require.Same(t, ended, c.Fate.Failure())
			require.Equal(t, tc.later, later)
		})
	}
}

// The rank that aborts takes what is decided, as all others do; its own cause only where nobody decides.
func TestAbortTakesWhatIsDecided(t *testing.T) {
	for _, tc := range []struct {
		name    string
		decided bool
		want    call.Code
	}{{"another failure came first", true, call.Canceled}, {"nobody decides", false, call.Aborted}} {
		t.Run(tc.name, func(t *testing.T) {
			s, next := leadOfThree(t)
			lives(t, s.Job)
			c := memberOf(t, s, 9, 2, Options{})
			var all sync.WaitGroup
			all.Go(func() { Abort(c, &call.Fault{Code: call.Aborted, Peer: 2, Err: errors.New("enough")}) })
			require.Equal(t, fmt.Sprintf("code %d stage %d peer 2 node 1", call.Aborted, event.Proposed), next())
			require.Nil(t, c.Fate.Failure(), "host 0 has not decided")
			if tc.decided {
				e := event.New(9, call.Canceled, 4, 4, 2, errors.New("first"))
				e.Origin, e.Number, e.Stage = 4, 1, event.Decided
				s.receiveEvent(&e, s.Near.Conns[0])
			}
			require.Eventually(t, func() bool {
				s.expireProposals()
				return c.Fate.Failure() != nil
			}, 20*time.Second, time.Millisecond)
			all.Wait()
			require.Equal(t, tc.want, c.Fate.Failure().Code)
			s.expireProposals()
			require.False(t, s.proposals.Any(), "it is moot")
		})
	}
}

// A call that waits for a rank of its host ends as soon as that is known to make no call any more; one that waits for another
// host goes on, since what that has sent may be under way.
func TestOutliveWhoFailed(t *testing.T) {
	failed := func(c *Member, r int) {
		c.Site.Job.Statuses.Keep(&status.Status{Comm: c.Group.ID(), Rank: int32(r), Size: 3, Failed: true}, 1)
	}
	busy := true
	apart := oneOf(t, []int{0, 1, 2}, &busy)
	failed(apart, 1)
	require.False(t, apart.Standing.empty(1))

	c := ranks(t, 3, Options{Hooks: Hooks{Busy: func() bool { return true }}})[0]
	lost := &call.Fault{Code: call.RankLost, Peer: 2, Err: watch.ErrEnded}
	c.Fate.outlived.Store(&outlived{lost, 1})
	c.Fate.proposal.Store(lost)
	c.Standing.note.asleep, c.Standing.note.on.peer, c.Standing.note.since = true, 1, 1
	require.False(t, c.Standing.empty(1))
	failed(c, 1)
	require.True(t, c.Standing.empty(1))
	c.endLastCall(1 + int64(3*tick))
	require.Eventually(t, func() bool { return c.Fate.Failure() == lost }, 20*time.Second, time.Millisecond)
}

// A rank that can wait no longer, or makes another call, gets the cause that the call under way has outlived.
func TestSettleAfterTheLastCall(t *testing.T) {
	busy := true
	c := oneOf(t, []int{0, 1, 2}, &busy)
	ended := call.NewFault(call.RankLost, 1, "its process ended")
	require.True(t, c.Standing.outlive(ended))
	require.Same(t, ended, c.Settle(call.NewFault(call.Timeout, 0, "")))
}

// A host whose ranks have all closed a Comm cannot be lost to it any more, also where that is heard before this process has the
// Comm; hosts of other Comms can.
func TestMarkClosed(t *testing.T) {
	busy := false
	c := oneOf(t, []int{0, 1, 2}, &busy)
	j := c.Site.Job
	j.markClosed(hostClosed{11, 1})
	j.markClosed(hostClosed{12, 2})
	require.True(t, c.Share.HasLeft(1))
	require.False(t, c.Share.HasLeft(2))
	later := oneOf(t, []int{0, 1, 2}, &busy)
	j.comms.remove(c)
	later.Site.Job = j
	j.add(later)
	require.True(t, later.Share.HasLeft(1))
	require.False(t, later.Share.HasLeft(2))
	for range 2 * earlyMost {
		j.markClosed(hostClosed{13, 2})
	}
	require.Len(t, j.early, earlyMost)
}

// The abort word of a peer's failed call needs no explanation where this rank goes on after the same end of a process: it
// fails with that cause, at once.
func TestAbortWordAfterAnEnd(t *testing.T) {
	c := ranks(t, 3, Options{})[0]
	lost := &call.Fault{Code: call.RankLost, Peer: 1, Err: watch.ErrEnded}
	c.Fate.outlived.Store(&outlived{fault: lost})
	c.checkAbortWord(time.Minute)
	require.Nil(t, c.Fate.cause.Load())
	c.Share.Local.Abort().Store(1 + 2)
	c.checkAbortWord(time.Minute)
	require.Same(t, lost, c.Fate.cause.Load())
}
