package plane

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/algo"
)

// The call of rank 0, whose context ends, names ranks of its Comm that wait for nobody. Where those it waits for wait
// themselves, in another Comm, for a rank that is none of its own, it names that one, and is not the fault of this rank.
func TestUnfinished(t *testing.T) {
	waits := func(comm uint64, world, on int32) status.Status {
		return status.Status{Comm: comm, Rank: world, World: world, For: on, Size: 8, Doing: status.Waits}
	}
	named := waits(2, 4, 6)
	named.SetName("tp")
	for _, tc := range []struct {
		name    string
		told    []status.Status
		missing []int
		peer    int
		late    []int
		own     bool
		err     string
	}{
		{"nothing is known of those it waits for", nil, []int{1, 2}, 1, []int{1, 2}, true, "too late"},
		{"it waits for nobody", nil, nil, -1, nil, true, "too late"},
		{"one of two waits for the other", []status.Status{waits(2, 1, 2)}, []int{1, 2}, 2, []int{2}, true, "too late"},
		{"both wait for a third", []status.Status{waits(2, 1, 3), waits(3, 2, 3)}, []int{1, 2}, 3, []int{3}, true, "too late"},
		{"a rank that is none of its own is late", []status.Status{waits(2, 1, 4), named}, []int{1}, -1, []int{1}, false, "world rank 6 is late in tp: too late"},
		{"they wait for each other", []status.Status{waits(2, 1, 2), waits(3, 2, 1)}, []int{1, 2}, 1, []int{1, 2}, true, "too late"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(&Job{}, 0)
			for _, st := range tc.told {
				s.Job.Statuses.Keep(&st, s.Job.Clock())
			}
			c := &Member{}
			c.Group = group.New(1, group.MembersOf([]int{0, 1, 2, 3}), algo.Flat(4), 0, group.Agreed{})
			c.Site = s
			join(c)
			f := c.Standing.Unfinished(context.Canceled, errors.New("too late"), tc.missing)
			assert.Equal(t, call.Canceled, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Equal(t, tc.late, f.Missing)
			assert.Equal(t, tc.own, f.Own)
			assert.EqualError(t, f.Err, tc.err)
		})
	}
}

// A rank that gives up in a circle of waits says so, and blames nobody; a rank beside the circle does not.
func TestUnfinishedInADeadlock(t *testing.T) {
	recv := func(rank, from int32) status.Status {
		s := status.Status{Comm: 1, Rank: rank, World: rank, For: -1, Peer: from, To: -1, Size: 4, Doing: status.Waits,
			Call: call.Record{Kind: call.Recv, Place: 3, Seq: 7, Root: from}}
		s.SetName("tp")
		return s
	}
	for me, want := range []string{
		"deadlock: rank 0 waits for 2 in tp #7, 2 for 1 in tp #7, 1 for 0 in tp #7, all in Recv: too late",
		"deadlock: rank 0 waits for 2 in tp #7, 2 for 1 in tp #7, 1 for 0 in tp #7, all in Recv: too late",
		"deadlock: rank 0 waits for 2 in tp #7, 2 for 1 in tp #7, 1 for 0 in tp #7, all in Recv: too late", "too late",
	} {
		s := newSite(&Job{}, 0)
		for _, st := range []status.Status{recv(0, 2), recv(1, 0), recv(2, 1)} {
			s.Job.Statuses.Keep(&st, s.Job.Clock())
		}
		c := &Member{}
		c.Group = group.New(1, group.MembersOf([]int{0, 1, 2, 3}), algo.Flat(4), me, group.Agreed{})
		c.Site = s
		join(c)
		f := c.Standing.Unfinished(context.DeadlineExceeded, errors.New("too late"), nil)
		require.EqualError(t, f.Err, want, "rank %d", me)
		require.Equal(t, -1, f.Peer)
	}
}

// Of the ranks that have not come to a rank's last collective those that are furthest behind keep the others waiting, and of
// these the ones that do not wait themselves.
func TestLateRanks(t *testing.T) {
	all := ranks(t, 4, Options{})
	c := all[0]
	require.Empty(t, c.Standing.LateRanks(), "none has made a call")
	for _, n := range []int{2, 3, 1} { // calls of ranks 0, 1, 2; rank 3 makes none
		for range n {
			enter(all[0], call.Barrier)
		}
		all = all[1:]
	}
	require.Equal(t, []int{3}, c.Standing.LateRanks())
	enter(all[0], call.Barrier)
	require.Equal(t, []int{2, 3}, c.Standing.LateRanks())
	c.Share.Local.Waits(3).Store(1<<32 | 3)
	require.Equal(t, []int{2}, c.Standing.LateRanks(), "rank 3 waits for another")
	c.Share.Local.Waits(2).Store(1<<32 | 1)
	require.Equal(t, []int{2, 3}, c.Standing.LateRanks(), "all of them wait")

	require.Nil(t, c.Share.closedLate())
	c.Share.Local.State(1).Store(region.StateClosed)
	require.Nil(t, c.Share.closedLate(), "it has done its part")
	c.Share.Local.State(3).Store(region.StateClosed)
	f := c.Share.closedLate()
	require.Equal(t, []any{call.Closed, 3}, []any{f.Code, f.Peer})

	f = c.Standing.Late(errors.New("the stream stands still"))
	require.Equal(t, []any{call.Timeout, 2, []int{2, 3}}, []any{f.Code, f.Peer, f.Missing})
	f = c.Standing.overdue([]int{3})
	require.EqualError(t, f.Err, "not done after 0s")
}

// The rank of the world that a rank waits for: one that is late in its collective, or its peer.
func TestAwaited(t *testing.T) {
	all := ranks(t, 3, Options{})
	c := all[0]
	enter(c, call.Barrier)
	enter(all[1], call.Barrier)
	st := status.Status{Doing: status.Waits, Peer: 1, Call: call.Record{Kind: call.Barrier}}
	require.EqualValues(t, 2, c.Standing.awaited(&st))
	st.Call.Kind = call.Recv
	require.EqualValues(t, 1, c.Standing.awaited(&st))
	st.Peer = -1
	require.EqualValues(t, -1, c.Standing.awaited(&st))
	st.Peer, st.Doing = 1, status.AtWork
	require.EqualValues(t, -1, c.Standing.awaited(&st))
	enter(all[2], call.Barrier)
	st = status.Status{Doing: status.Waits, Peer: 1, Call: call.Record{Kind: call.Barrier}}
	require.EqualValues(t, 1, c.Standing.awaited(&st), "all have come: the one it waits for in it")
}
