package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func init() { roles["closes twice"] = closesTwice }

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

// A second Close, and a Finish, return once the first has, and not before.
func TestSecondCloseWaits(t *testing.T) {
	for name, end := range map[string]func(c *ccl.Comm) error{
		"Close":  (*ccl.Comm).Close,
		"Finish": func(c *ccl.Comm) (err error) { c.Finish(&err); return err },
	} {
		t.Run(name, func(t *testing.T) {
			all, gate, s := pair(t, func(int) *ccl.Options { return &ccl.Options{PeerTimeout: time.Minute} }), make(chan struct{}), ccl.NewHostStream()
			s.Do(func() error { <-gate; return nil })
			all[0].On(s).Send(ccl.BufOf([]int{1}), 1) // for which the first Close waits
			var both sync.WaitGroup
			both.Go(func() { assert.NoError(t, all[0].Close()) })
			until(t, "no Close is under way", func() bool { return ccl.IsClosing(all[0]) })
			var early atomic.Bool
			both.Go(func() {
				assert.NoError(t, end(all[0]))
				early.Store(!ccl.HasClosed(all[0]))
			})
			until(t, "the second does not wait", func() bool { return early.Load() || strings.Contains(stacks(), "plane.AwaitLived") })
			close(gate)
			ends(t, "Close", both.Wait)
			assert.False(t, early.Load())
		})
	}
}

// In a function that the Comm calls, or a HostStream, Close returns at once where another is under way, which may wait for that
// function. Each function here runs while the first Close waits for a call, the second, which OnCall holds.
func TestSecondCloseInCallbacks(t *testing.T) {
	var c atomic.Pointer[ccl.Comm]
	gate := make(chan struct{})
	closed := make(chan string, 8)
	again := func(where string) {
		until(t, "no Close is under way", func() bool { return ccl.IsClosing(c.Load()) })
		assert.NoError(t, c.Load().Close())
		assert.False(t, ccl.HasClosed(c.Load()), "%s: the first Close is over", where)
		closed <- where
	}
	armed := make(chan struct{})
	all := pair(t, func(rank int) *ccl.Options {
		o := &ccl.Options{PeerTimeout: time.Minute}
		if rank == 0 {
			o.OnFailure = func(*ccl.Error) { again("OnFailure") }
			o.OnCall = func(call ccl.Observation) {
				if call.Call.Seq == 2 {
					<-gate
					return
				}
				<-armed
				again("OnCall")
			}
		}
		return o
	})
	c.Store(all[0])
	s := ccl.NewHostStream()
	s.Do(func() error { again("Do"); return nil }).OnDone(func(error) { again("OnDone of a function") })
	ccl.LinkTo(all[0], 1, 0).Recv(ccl.BufOf([]int{1})).OnDone(func(error) { again("OnDone of a message") })
	all[0].On(nil).Send(ccl.BufOf([]int{1}), 1).OnDone(func(error) { again("OnDone of a call") })
	all[0].On(nil).Send(ccl.BufOf([]int{1}), 1)
	close(armed)
	var first sync.WaitGroup
	first.Go(func() { all[0].Close() })
	got := map[string]bool{}
	ends(t, "Close in OnCall, OnDone and Do", func() {
		for range 4 {
			got[<-closed] = true
		}
	})
	all[1].Abort(errors.New("enough"))
	ends(t, "Close in OnFailure and OnDone", func() {
		for range 2 {
			got[<-closed] = true
		}
	})
	assert.Len(t, got, 6, "%v", got)
	close(gate)
	ends(t, "the first Close", first.Wait)
}

// closesTwice is a rank of TestClosingTwiceIsNoLoss.
func closesTwice(ctx context.Context, t *testing.T, _ string) {
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: 20 * time.Second})
	require.NoError(t, err)
	last := c.Rank() == c.Size()-1
	if last {
		time.AfterFunc(20*time.Millisecond, func() { c.Close() })
	} else {
		defer c.Close()
	}
	x := make([]float32, 1000)
	for err == nil {
		err = ccl.AllReduce(ctx, c, x, x, ccl.Sum)
	}
	if last {
		assert.NoError(t, c.Close())
		return // and the process ends
	}
	e := wants(t, err, ccl.ErrClosed)
	assert.Equal(t, c.Size()-1, e.Peer)
	fmt.Printf("rank %d has heard\n", c.Rank())
}

// A process whose call ends since another of its goroutines closes the Comm, and which then closes it as well and ends, has closed it
// for the others: they don't take it for lost.
func TestClosingTwiceIsNoLoss(t *testing.T) {
	for _, hosts := range []int{1, 3} {
		for range 3 {
			out := processes(t, 3, hosts, "closes twice", "")
			for r := range 2 {
				require.Contains(t, out, fmt.Sprintf("rank %d has heard\n", r))
			}
		}
	}
}
