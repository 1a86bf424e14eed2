package ccl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// All ranks learn of every rank that has not come, however ranks talk and whosever the deadline is, and all fail alike; where all have
// come, nobody leaves before.
func TestMonitoredBarrier(t *testing.T) {
	for _, limited := range []int{0, 2} {
		var all [5]atomic.Pointer[ccl.Comm]
		everywhere(t, 5, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			all[c.Rank()].Store(c)
			for range 3 {
				require.NoError(t, ccl.MonitoredBarrier(ctx, c))
			}
			works(ctx, t, c)
			meet(ctx)
			var err error
			switch c.Rank() {
			case limited:
				sleeps(t, all[2-limited].Load())
				short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				defer cancel()
				err = ccl.MonitoredBarrier(short, c)
			case 2 - limited:
				err = ccl.MonitoredBarrier(ctx, c)
			default:
				<-c.Done()
				e := wants(t, c.Err(), ccl.ErrTimeout)
				require.Equal(t, []any{1, []int{1, 3, 4}}, []any{e.Peer, e.Missing}, "%v", e)
				return
			}
			e := wants(t, err, ccl.ErrTimeout)
			require.Equal(t, []any{"MonitoredBarrier", 1, []int{1, 3, 4}}, []any{e.Op, e.Peer, e.Missing}, "%v", e)
			require.Equal(t, ccl.KindMonitoredBarrier, e.Mine.Kind)
			require.ErrorContains(t, e, ": timed out at rank 1; no response from: ranks 1, 3, 4: context deadline exceeded")
		})
	}
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() > 0 {
			<-c.Done()
			return
		}
		gone, cancel := context.WithCancel(ctx)
		time.AfterFunc(20*time.Millisecond, cancel)
		wants(t, ccl.MonitoredBarrier(gone, c), ccl.ErrCanceled)
	})
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		require.NoError(t, ccl.MonitoredBarrier(ctx, c))
	})
	var none *ccl.Comm
	require.ErrorIs(t, ccl.MonitoredBarrier(t.Context(), none), ccl.ErrArgument)
}
