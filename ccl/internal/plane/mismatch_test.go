package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// Another call of a rank of the host is found at its place; what follows it differs as well, and the first one counts.
func TestOtherCalls(t *testing.T) {
	all := ranks(t, 3, Options{})
	a, b := all[0], all[1]
	enter(a, call.AllReduce)
	require.Nil(t, a.Share.OtherCallAt(1), "nobody else has come")
	require.Nil(t, a.Odd())
	enter(b, call.AllReduce)
	require.Nil(t, a.Share.OtherCallAt(1))
	enter(a, call.Barrier)
	enter(b, call.AllReduce)
	for _, find := range []func() *call.Fault{func() *call.Fault { return a.Share.OtherCallAt(2) }, a.Odd, a.Order.otherCall} {
		f := find()
		require.Equal(t, []any{call.Mismatch, 1, call.Barrier, call.AllReduce, uint64(2)}, []any{f.Code, f.Peer, f.Mine.Kind, f.Theirs.Kind, f.Theirs.Place})
	}
	enter(a, call.AllReduce)
	enter(b, call.AllReduce)
	f := a.Share.OtherCallAt(3)
	require.Equal(t, []any{call.Barrier, uint64(2)}, []any{f.Mine.Kind, f.Mine.Place}, "the first that differs")
	enter(b, call.AllReduce)
	require.Nil(t, a.Order.otherCall(), "the other is in another place")
	require.NotNil(t, a.Odd(), "but has been here")
	require.Nil(t, all[2].Odd(), "a rank that has made none")

	require.True(t, a.Share.contradicts(&call.Record{Place: 2, Kind: call.AllReduce, Hash: f.Theirs.Hash}))
	require.False(t, a.Share.contradicts(f.Mine))
	require.False(t, a.Share.contradicts(&call.Record{Place: 2, Kind: call.Recv, Hash: 1}), "in no order of all ranks")
	require.False(t, a.Share.contradicts(&call.Record{Place: 9, Kind: call.Barrier, Hash: 1}), "not made yet")
}

// What a rank of another host says of its calls is compared with what this one has made.
func TestCheckAgainst(t *testing.T) {
	for _, tc := range []struct {
		name  string
		opt   Options
		of    status.Status
		fails bool
	}{
		{"another call", Options{}, status.Status{Rank: 1, Calls: 1, Hash: 7, Call: call.Record{Kind: call.Barrier}}, true},
		{"a call that this rank has not made", Options{}, status.Status{Rank: 1, Calls: 2, Hash: 7, Call: call.Record{Kind: call.Barrier}}, false},
		{"its own", Options{}, status.Status{Rank: 0, Calls: 1, Hash: 7, Call: call.Record{Kind: call.Barrier}}, false},
		{"none yet", Options{}, status.Status{Rank: 1, Hash: 7, Call: call.Record{Kind: call.Barrier}}, false},
		{"a send", Options{}, status.Status{Rank: 1, Calls: 1, Hash: 7, Call: call.Record{Kind: call.Send}}, false},
		{"not checked", Options{Agreed: group.Agreed{Unchecked: true}}, status.Status{Rank: 1, Calls: 1, Hash: 7, Call: call.Record{Kind: call.Barrier}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ranks(t, 2, tc.opt)[0]
			enter(c, call.AllReduce)
			c.checkAgainst(&tc.of)
			if !tc.fails {
				require.Nil(t, c.Fate.proposal.Load())
				return
			}
			require.Eventually(t, func() bool { return c.Fate.cause.Load() != nil }, 10*time.Second, time.Millisecond)
			f := c.Fate.cause.Load()
			require.Equal(t, []any{call.Mismatch, 1, call.AllReduce, call.Barrier}, []any{f.Code, f.Peer, f.Mine.Kind, f.Theirs.Kind})
		})
	}
}

// A call is compared once with what ranks of other hosts have told, and each time with those of this host.
func TestCompare(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	enter(c, call.AllReduce)
	mine, _, _ := c.Standing.status(0)
	require.Nil(t, c.Standing.compare(&mine))
	theirs := status.Status{Comm: group.WorldID, Rank: 1, Calls: 1, Hash: mine.Hash + 2, Brief: true, Call: call.Record{Kind: call.Barrier}}
	c.Site.Job.Statuses.Keep(&theirs, 0)
	require.Nil(t, c.Standing.compare(&mine), "it has been compared")
	f := c.Standing.compareHeard(&mine)
	require.Equal(t, []any{1, call.Barrier}, []any{f.Peer, f.Theirs.Kind})
	c.Standing.note.looked = 0
	require.Equal(t, f, c.Standing.compare(&mine))
	enter(all[1], call.Barrier)
	f = c.Standing.compare(&mine)
	require.Equal(t, []any{1, call.AllReduce, call.Barrier, uint64(1)}, []any{f.Peer, f.Mine.Kind, f.Theirs.Kind, f.Theirs.Place}, "of this host")
}
