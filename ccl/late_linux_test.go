package ccl_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// monotonic is a clock that all processes of a machine share.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

var lateRounds = flag.Int("late", 20, "how often the peer is late in TestLatePeer")

// A rank goes on soon after a peer for which it has waited long: the log has the median, in microseconds. The promise, on a
// quiet machine (make late), is 60, and 150 over TCP.
func TestLatePeer(t *testing.T) {
	for _, w := range []struct {
		name string
		opts []ccltest.Option
	}{
		{"goroutines", nil},
		{"processes", []ccltest.Option{ccltest.Processes(2)}},
		{"goroutines over TCP", []ccltest.Option{ccltest.Hosts(2)}},
		{"processes over TCP", []ccltest.Option{ccltest.Hosts(2), ccltest.Processes(2)}},
	} {
		t.Run(w.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				at, late := make([]int64, 1), make([]int64, 0, *lateRounds)
				for range *lateRounds {
					if c.Rank() == 1 {
						time.Sleep(3 * time.Millisecond)
						at[0] = monotonic()
						require.NoError(t, ccl.Send(t.Context(), c, at, 0))
						continue
					}
					before := at[0]
					require.NoError(t, ccl.Recv(t.Context(), c, at, 1))
					require.Greater(t, at[0], before)
					late = append(late, monotonic()-at[0])
				}
				if c.Rank() == 0 {
					slices.Sort(late)
					t.Logf("%.1f us late", float64(late[len(late)/2])/1e3)
				}
			}, w.opts...)
		})
	}
}
