package tcp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func twoNodes(t *testing.T) (a, b *Node) {
	checkLeaks(t)
	return listen(t), listen(t)
}

// An announced communicator takes connections from Expect on until it is forgotten, and nothing is remembered of it.
func TestAnnounced(t *testing.T) {
	a, b := twoNodes(t)
	for id := range uint64(100) {
		key := MakeKey(Announced|id, 0, 0, 1)
		_, err := a.Open(t.Context(), key, 0, b.Addr())
		require.ErrorIs(t, err, ErrGone)
		b.Expect(key.Comm, 1)
		c, err := a.Open(t.Context(), key, 0, b.Addr())
		require.NoError(t, err)
		b.Forget(key.Comm, 1)
		_, err = a.Open(t.Context(), key, 0, b.Addr())
		require.ErrorIs(t, err, ErrGone)
		require.NoError(t, c.Close())
	}
	require.Empty(t, b.live)
	require.Empty(t, b.over.why)
	require.True(t, eventually(func() bool { return booked(b) == 0 }))
}

// What was dialed to a communicator that has failed is dropped. Who dials it later tries on: the reason comes another way. Once it
// has come, there is nothing to try any more.
func TestFailed(t *testing.T) {
	a, b := twoNodes(t)
	for _, comm := range []uint64{7, Announced | 7} {
		key := MakeKey(comm, 0, 0, 1)
		b.Expect(comm, 1)
		c, err := a.Open(t.Context(), key, 0, b.Addr())
		require.NoError(t, err)
		require.True(t, eventually(func() bool { return booked(b) == 1 }))
		b.Fail(comm, 1)
		require.Zero(t, booked(b), "a connection is left that nobody will open")
		require.NoError(t, c.Close())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = a.Open(ctx, key, 0, b.Addr())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrGone)
		asked := 0
		_, err = a.OpenUnless(t.Context(), key, 0, b.Addr(), never, func() bool { asked++; return asked == 3 })
		require.ErrorIs(t, err, ErrFailed)
	}
}

// What is remembered of the others is bounded; the latest stay.
func TestMemoryIsBounded(t *testing.T) {
	var o memory
	for i := range 3 * keptEnded {
		o.keep(member{uint64(i), 1}, ErrDone)
		o.keep(member{uint64(i), 1}, ErrGone)
	}
	require.Len(t, o.why, keptEnded)
	require.Len(t, o.list, keptEnded)
	for i := 2 * keptEnded; i < 3*keptEnded; i++ {
		require.Equal(t, ErrDone, o.why[member{uint64(i), 1}])
	}
}
