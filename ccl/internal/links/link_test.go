package links

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// A link is made once for each peer and class. It can be read from once the peer has made its end, and both ends know each
// other then.
func TestLinkIsMadeOnce(t *testing.T) {
	all := ranksOf(t, 2, plane.Options{})
	link := func(c *Links, peer int, cl class) *Link {
		l, f := c.Ends.Link(t.Context(), peer, cl)
		require.Nil(t, f)
		return l
	}
	ready := func(c *Links, l *Link) bool {
		ok, f := c.Ends.Ready(l)
		require.Nil(t, f)
		return ok
	}
	l := link(all[0], 1, collective)
	require.Same(t, l, link(all[0], 1, collective))
	require.NotSame(t, l, link(all[0], 1, PointToPoint))
	require.False(t, ready(all[0], l), "the peer has made no pipe")
	theirs := link(all[1], 0, collective)
	require.True(t, ready(all[0], l))
	require.True(t, ready(all[1], theirs))
	require.Same(t, l.From, l.To.back)
	n, err := l.out.TrySend([]byte("abc"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	b := make([]byte, 9)
	n, err = theirs.in.TryRecv(b)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b[:n]))
	require.Len(t, all[0].Ends.made, 2)
}

// What a peer says last is why it leaves. A failure of which this rank is blamed is one of the peer, as this rank sees it, and
// so is one of a third rank, until the control plane says so, too.
func TestFarewell(t *testing.T) {
	t.Parallel() // where no report comes, it is waited for
	c := ranksOf(t, 3, plane.Options{})[0]
	for _, tc := range []struct {
		name string
		head head
		want *call.Fault
	}{
		{"data", head{kind: messageData}, nil},
		{"closed", head{kind: messageBye}, call.NewFault(call.Closed, 1, "")},
		{"failed by another, as nobody else says", head{kind: messageFailed, step: uint32(call.RankLost), record: call.Record{Root: 2}}, call.NewFault(call.Backend, 1, "it left the call for a failure of rank 2 that no rank has reported")},
		{"failed by no rank", head{kind: messageFailed, step: uint32(call.Timeout), record: call.Record{Root: -1}}, call.NewFault(call.Backend, 1, "it left the call for a failure of rank -1 that no rank has reported")},
		{"failed by itself", head{kind: messageFailed, step: uint32(call.Aborted), record: call.Record{Root: 1}}, call.NewFault(call.Aborted, 1, "")},
		{"failed by this one", head{kind: messageFailed, step: uint32(call.Timeout), record: call.Record{Root: 0}}, call.NewFault(call.Timeout, 1, "")},
		{"no code", head{kind: messageFailed, record: call.Record{Root: 2}}, call.NewFault(call.RankLost, 1, "")},
		{"a code that is none", head{kind: messageFailed, step: uint32(call.Closed) + 1, record: call.Record{Root: 2}}, call.NewFault(call.RankLost, 1, "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, c.Ends.farewell(&tc.head, 1))
		})
	}
}

// Whomever a peer blames as it leaves: the report is waited for, and is what this rank believes, since it has the cause. A peer
// that closes a Comm at once says good bye before its report has come.
func TestFarewellBeforeTheReport(t *testing.T) {
	for blamed, code := range []call.Code{call.Aborted, call.Aborted, call.RankLost} {
		t.Run(fmt.Sprintf("blames rank %d", blamed), func(t *testing.T) {
			c := ranksOf(t, 3, plane.Options{})[0]
			reported := call.NewFault(code, blamed, "the cause")
			said := make(chan *call.Fault, 1)
			go func() {
				said <- c.Ends.farewell(&head{kind: messageFailed, step: uint32(code), record: call.Record{Root: int32(blamed)}}, 1)
			}()
			select {
			case f := <-said:
				t.Fatalf("it believes the peer: %+v", f)
			case <-time.After(20 * time.Millisecond):
			}
			require.True(t, c.rank.FailHere(reported))
			require.Same(t, reported, <-said)
			require.False(t, c.Ends.hasClosed(1), "a rank of this host needs no connection to say so")
		})
	}
}
