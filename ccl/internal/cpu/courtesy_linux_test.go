package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rank of this host that waits beside processes that compute sleeps soon, its call ends when the other one posts, and
// leaves no bell behind.
func TestAbrupt(t *testing.T) {
	c := twoOfAHost(t)
	var w waiter
	require.False(t, c[0].abrupt(&w, 1), "it gives way at first")
	for _, x := range c {
		x.site.courtesy.until.Store(int64(time.Since(x.site.born) + time.Hour))
	}
	require.True(t, c[0].abrupt(&w, 1))
	require.False(t, c[0].abrupt(&waiter{remote: true}, 1), "nobody rings for what comes over TCP")

	each(t, c[:], func(c *Comm) error {
		for range 100 {
			if err := run(t, c, &Call{Record: Record{Kind: Barrier}}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, x := range c {
		require.Zero(t, x.local.sleepers().Load())
		require.Zero(t, x.local.bell(x.me).Load())
	}

	c[0].spins = spinsCrowded
	require.False(t, c[0].abrupt(&w, 1), "who waits for a processor anyhow gives way")
}
