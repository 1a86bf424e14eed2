package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Rank 0 learns of every rank that has not come, however ranks talk, and all fail alike; where all have come, nobody leaves before.
func TestMonitoredBarrier(t *testing.T) {
	everywhere(t, 5, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for range 3 {
			require.NoError(t, ccl.MonitoredBarrier(ctx, c))
		}
		works(ctx, t, c)
		meet(ctx)
		switch c.Rank() {
		case 0:
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			e := wants(t, ccl.MonitoredBarrier(short, c), ccl.ErrTimeout)
			require.Equal(t, []int{1, 3, 4}, e.Missing)
			require.Equal(t, "ccl: rank 0: MonitoredBarrier: timed out; no response from: ranks 1, 3, 4: context deadline exceeded", e.Error())
		case 2:
			wants(t, ccl.MonitoredBarrier(ctx, c), ccl.ErrTimeout)
		default:
			<-c.Done()
			wants(t, c.Err(), ccl.ErrTimeout)
		}
	})
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
