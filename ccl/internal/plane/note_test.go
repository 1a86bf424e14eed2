package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// Where a rank stands, by the note of its call.
func TestStatusOfARank(t *testing.T) {
	busy := false
	c := ranks(t, 3, Options{Hooks: Hooks{Busy: func() bool { return busy }}})[1]
	ms := int64(time.Millisecond)
	at := func(now int64) status.Status {
		c.Standing.note.Lock()
		defer c.Standing.note.Unlock()
		s, _, ok := c.Standing.status(now)
		require.True(t, ok)
		return s
	}
	outside := status.Status{Comm: group.WorldID, Rank: 1, Size: 3, World: 1, Peer: -1, To: -1, For: -1}
	require.Equal(t, outside, at(0))
	enter(c, call.AllReduce)
	outside.Calls, outside.Call = 1, c.Order.Entered(0)
	outside.Hash = outside.Call.Hash
	require.Equal(t, outside, at(0))
	busy = true
	working := outside
	working.Doing = status.AtWork
	require.Equal(t, working, at(0))

	sleeps(c, call.AllReduce, 2, 5*ms)
	waits := outside
	waits.Doing, waits.Peer, waits.Waited = status.Waits, 2, 7
	require.Equal(t, waits, at(12*ms))
	c.noteAgain(&Waiter{}, 0)
	waits.Peer = 0
	require.Equal(t, waits, at(12*ms))
	c.Site.Job.Time.Coarse.Stamp(c.Site.Job.Time.Coarse.Born.Add(10*time.Millisecond), false)
	c.NoteProgress()
	waits.Waited = 2
	require.Equal(t, waits, at(12*ms))
	c.EndSleep()
	require.Equal(t, working, at(12*ms))

	sleeps(c, call.Recv, 2, 5*ms)
	require.Equal(t, call.Recv, at(6*ms).Call.Kind, "a receive is no collective, but what it waits in")
	enter(c, call.Barrier)
	require.Equal(t, status.AtWork, at(6*ms).Doing, "the note is of a call before")
	c.Standing.Elsewhere.Stands(2 * ms)
	s := at(6 * ms)
	require.Equal(t, []any{status.Waits, int32(-1), uint32(4), call.Barrier}, []any{s.Doing, s.Peer, s.Waited, s.Call.Kind})
	c.Fate.cause.Store(&call.Fault{Code: call.Aborted})
	require.True(t, at(6*ms).Failed)
}

// A call on a Stream is known as one while it runs, and while it sleeps.
func TestOnStream(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	require.False(t, c.Standing.note.onStream(nil))
	require.True(t, c.Standing.note.onStream(&call.Call{Queued: true}))
	require.False(t, c.Standing.note.onStream(&call.Call{}))
	c.noteSleep(&call.Call{Queued: true}, &Waiter{}, 1)
	require.True(t, c.Standing.note.onStream(nil))
	c.EndSleep()
	require.False(t, c.Standing.note.onStream(nil))
}
