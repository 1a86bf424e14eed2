package ccl_test

import (
	"context"
	"fmt"
	"slices"
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
			require.Regexp(t, `^ccl/monitored_test\.go:\d+$`, e.Mine.Caller)
			require.ErrorContains(t, e, ": timed out at rank 1; no response from: ranks 1, 3, 4: context deadline exceeded")
		})
	}
	// Late ranks above and beside others that are late in the tree of 12 hosts: 0 over 1, 2, 4, 8; 4 over 5, 6; 6 over 7; 8 over 9, 10; 10 over 11.
	for _, late := range [][]int{{4, 5, 6, 7}, {0, 3, 10}, {1, 8, 11}, {0, 4, 8, 9}} {
		for _, limited := range []int{2, 0} {
			if slices.Contains(late, limited) {
				continue
			}
			hosts := make([]string, 12)
			for r := range hosts {
				hosts[r] = fmt.Sprint("host", r)
			}
			t.Run(fmt.Sprint(late, " late, a limit of rank ", limited), func(t *testing.T) {
				virtually(t, 12, hosts, func(int) *ccl.Options { return nil }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					if slices.Contains(late, c.Rank()) {
						<-c.Done()
						require.Equal(t, late, wants(t, c.Err(), ccl.ErrTimeout).Missing)
						return
					}
					if c.Rank() == limited {
						short, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						ctx = short
					}
					require.Equal(t, late, wants(t, ccl.MonitoredBarrier(ctx, c), ccl.ErrTimeout).Missing)
				})
			})
		}
	}
	// A rank that waits elsewhere for one that calls the roll has not come, though the two are in a circle.
	inTime(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		other, err := c.Split(ctx, 0, 0)
		require.NoError(t, err)
		defer other.Close()
		if c.Rank() > 0 {
			wants(t, ccl.Barrier(ctx, other), ccl.ErrAborted)
			return
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		e := wants(t, ccl.MonitoredBarrier(short, c), ccl.ErrTimeout)
		require.Equal(t, []int{1, 2}, e.Missing, "%v", e)
		require.ErrorContains(t, e, "deadlock: rank 0 waits for")
		other.Abort(nil)
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
