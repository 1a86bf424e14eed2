package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

// A rank of this host that waits beside processes that compute sleeps soon, its call ends when the other one posts, and
// leaves no bell behind.
func TestAbrupt(t *testing.T) {
	c := twoOfAHost(t)
	var w plane.Waiter
	require.False(t, c[0].Abrupt(&w, 1), "it gives way at first")
	require.False(t, c[0].Abrupt(&plane.Waiter{Remote: true}, 1))
	for _, x := range c {
		x.Site.Yielding.Until.Store(int64(time.Since(x.Site.Born) + time.Hour))
	}
	require.True(t, c[0].Abrupt(&w, 1))
	require.True(t, c[0].Abrupt(&plane.Waiter{Remote: true}, 1), "it sleeps where nobody rings, too")

	each(t, c[:], func(c *Comm) error {
		for range 100 {
			if err := run(t, c, &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier}}}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, x := range c {
		require.Zero(t, x.Local.Sleepers().Load())
		require.Zero(t, x.Local.Bell(x.Me).Load())
	}
}
