package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
)

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
