package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// OnCall panics, and the program goes on: the call had been made, and the Comm serves the next ones.
func TestOnCallThatPanics(t *testing.T) {
	var once atomic.Bool
	all := pair(t, func(rank int) *ccl.Options {
		return &ccl.Options{OnCall: func(ccl.Observation) {
			if rank == 1 && once.CompareAndSwap(false, true) {
				panic("metrics")
			}
		}}
	})
	sum := func(c *ccl.Comm, x int64) error {
		y := []int64{x}
		if err := ccl.AllReduce(t.Context(), c, y, y, ccl.Sum); err != nil {
			return err
		}
		if y[0] != 2*x {
			return fmt.Errorf("the sum of %d and itself is %d", x, y[0])
		}
		return nil
	}
	var wg sync.WaitGroup
	for r, c := range all {
		wg.Go(func() {
			func() {
				defer func() { assert.Equal(t, r == 1, recover() != nil) }()
				assert.NoError(t, sum(c, 7))
			}()
			for i := range int64(100) {
				require.NoError(t, sum(c, i))
			}
			ends(t, "Close", func() { c.Close() })
		})
	}
	ends(t, "the ranks", wg.Wait)
}

// OnCall makes a call on its Comm, on all ranks alike: that has its place in the order.
func TestOnCallThatCalls(t *testing.T) {
	var comms [2]atomic.Pointer[ccl.Comm]
	var nested [2]atomic.Bool
	all := pair(t, func(rank int) *ccl.Options {
		return &ccl.Options{OnCall: func(o ccl.Observation) {
			if nested[rank].CompareAndSwap(false, true) {
				y := []int64{5}
				assert.NoError(t, ccl.AllReduce(context.Background(), comms[rank].Load(), y, y, ccl.Sum))
				assert.EqualValues(t, 10, y[0])
			}
		}}
	})
	var wg sync.WaitGroup
	for r, c := range all {
		comms[r].Store(c)
	}
	for _, c := range all {
		wg.Go(func() {
			for i := range 100 {
				y := []int{i}
				require.NoError(t, ccl.AllReduce(t.Context(), c, y, y, ccl.Sum))
				require.Equal(t, 2*i, y[0])
			}
			for range c.Trace() {
			}
		})
	}
	ends(t, "the ranks", wg.Wait)
}

// A rank of this process goes away without Close: the others hear that it has not come.
func TestRankThatGoesWithoutClose(t *testing.T) {
	var wg sync.WaitGroup
	bs := boot.Local(4)
	for r, b := range bs {
		wg.Go(func() {
			defer b.Close()
			c, err := ccl.NewComm(t.Context(), b, &ccl.Options{Timeout: time.Second})
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			if r == 3 {
				return
			}
			e := wants(t, ccl.Barrier(t.Context(), c), ccl.ErrTimeout)
			assert.Equal(t, 3, e.Peer)
		})
	}
	ends(t, "the ranks", wg.Wait)
}

func init() { roles["killed behind a stream"] = killedBehindAStream }

// killedBehindAStream is a rank of TestKilledPeerBehindABusyStream.
func killedBehindAStream(ctx context.Context, t *testing.T, _ string) {
	b, err := boot.Env(ctx)
	require.NoError(t, err)
	c, err := ccl.NewComm(ctx, b, nil)
	require.NoError(t, err)
	b.Close()
	require.NoError(t, ccl.Barrier(ctx, c))
	gate, s := make(chan struct{}), ccl.NewHostStream()
	s.Do(func() error { <-gate; return nil })
	w := c.On(s).Barrier()
	if c.Rank() == 1 {
		killSelf()
	}
	fmt.Println("Wait:", w.Wait(ctx))
	fmt.Println("call:", ccl.Barrier(ctx, c))
}

// A killed process ends what is queued behind a busy stream on the others, and calls behind that.
func TestKilledPeerBehindABusyStream(t *testing.T) {
	for _, hosts := range []int{0, 2} {
		out := processes(t, 2, hosts, "killed behind a stream", "")
		for _, use := range []string{"Wait", "call"} {
			assert.Regexp(t, use+": ccl: rank 0: Barrier .*: rank 1 lost: its process ended", out)
		}
	}
}
