package ccl

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

// Hosts that others reach at another address than their own tell that one: the hosts of a job, and
// rank 0 to a newcomer.
func TestAdvertise(t *testing.T) {
	const told = "127.0.0.9"
	t.Setenv("GOCCL_ADVERTISE", told)
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer hall.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var all sync.WaitGroup
	works := func(c *Comm) {
		sum := []int64{1}
		assert.NoError(t, AllReduce(ctx, c, sum, sum, Sum))
		assert.EqualValues(t, c.Size(), sum[0])
		assert.Equal(t, netip.MustParseAddr(told), addressOf(c))
		assert.True(t, c.eng.Control().Site.Job.Net.Addrs.At(c.Rank()).Addr().IsLoopback())
	}
	for r, b := range boot.Local(2, "a", "b") {
		all.Go(func() {
			defer b.Close()
			c, err := NewComm(ctx, b, &Options{Store: hall, Log: quiet})
			if !assert.NoError(t, err) {
				return
			}
			works(c)
			if r == 0 {
				all.Go(func() {
					n, err := Join(ctx, &Options{Store: hall, Log: quiet})
					if assert.NoError(t, err) {
						works(n)
						n.Close()
					}
				})
			}
			next := c
			for next == c && ctx.Err() == nil {
				if next, err = GrowAll(ctx, c, 3); !assert.NoError(t, err) {
					return
				}
			}
			works(next)
			next.Close()
			c.Close()
		})
	}
	all.Wait()
	l, found, err := listenAt(nil, netip.MustParseAddr("192.0.2.1")) // which this host has not
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, netip.MustParseAddr(told), netip.MustParseAddrPort(found).Addr())
	conn, err := net.Dial("tcp", found)
	require.NoError(t, err)
	conn.Close()
	guest := ourWays(nil)
	require.Equal(t, netip.MustParseAddr(told), guest.ours[0])
}
