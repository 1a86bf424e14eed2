package ccl_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A Comm that fails before a rank has opened what its peers dialed to that leaves no socket behind.
func TestFailedCommsLeaveNoSockets(t *testing.T) {
	if sockets() < 0 {
		return // only Linux tells
	}
	steps := 30
	var before, after int
	world(t, 2, []string{"a", "b"}, quiet, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		require.NoError(t, ccl.Barrier(ctx, c))
		for step := range steps {
			d, err := c.Split(ctx, 0, c.Rank())
			require.NoError(t, err)
			if c.Rank() == 0 {
				require.NoError(t, ccl.Broadcast(ctx, d, []int{1}, 0))
				d.Abort(errors.New("for this test"))
			}
			<-d.Done()
			d.Close()
			require.NoError(t, ccl.Barrier(ctx, c))
			if c.Rank() == 0 && step == steps/3 {
				before = sockets()
			}
		}
		if c.Rank() == 0 {
			until(t, "sockets are left", func() bool { after = sockets(); return after <= before+4 })
		}
	})
}

func quiet(int) *ccl.Options { return &ccl.Options{Log: slog.New(slog.DiscardHandler)} }

// A Comm that is split off and closed leaves nothing in memory, between hosts and inside one.
func TestClosedCommsLeaveNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes it slow and sees nothing in it that Split's other tests do not show")
	}
	const full = 4200 // Comms: package tcp remembers the last 4096 ends, and plane the last 8192 events; each leaves two
	steps := 7700
	if testing.Short() { // 280 bytes of each Comm are seen, and not 120
		steps = 5700
	}
	for name, hosts := range map[string][]string{"one host": nil, "two hosts": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			heap := func() int {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			var before int
			world(t, 2, hosts, quiet, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Minute) // seconds on a machine of its own
				defer cancel()
				for step := range steps + 1 {
					d, err := c.Split(ctx, 0, c.Rank())
					require.NoError(t, err)
					d.Close()
					if step == full || step == steps {
						meet(ctx)
						if c.Rank() == 0 && step == steps {
							const slack = 400 << 10 // of the runtime, and of a table of 4096 places, of which many are used again
							assert.Less(t, heap()-before, slack, "over %d Comms", steps-full)
						} else if c.Rank() == 0 {
							before = heap()
						}
						meet(ctx)
					}
				}
			})
		})
	}
}
