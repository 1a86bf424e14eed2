package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// A call that has slept is no more at its end, nor what it has said to others; one that has not leaves its bell alone.
func TestEndCall(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Seq: 1}}}
	c.Current.Begin(k, 40)
	require.Equal(t, []any{int64(40), false, true}, []any{c.Current.Since(), c.Current.Slept(), c.Standing.InCall()})
	c.Current.InRounds(true)
	require.True(t, c.Current.lockstep)
	c.EndCall()
	require.False(t, c.Standing.InCall())

	c.Current.Begin(k, 50)
	require.False(t, c.Current.lockstep, "that was the last one")
	c.noteSleep(k, &Waiter{}, 1)
	c.Current.running = nil
	c.Share.Local.Waits(0).Store(1<<32 | 2)
	require.True(t, c.Current.Slept())
	_, asleep := c.Standing.Sleeping()
	require.True(t, asleep)
	c.EndCall()
	_, asleep = c.Standing.Sleeping()
	require.False(t, asleep)
	require.Zero(t, c.Share.Local.Waits(0).Load())
	require.False(t, c.Standing.InCall())
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Current.Begin(k, 60)
		c.EndCall()
	}))
}
