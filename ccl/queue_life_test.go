package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A Comm fails for a queued call whose stream does not come to it, after Options.Timeout: also where what keeps the
// stream is a call that waits for it.
func TestTimeoutBehindABusyStream(t *testing.T) {
	o := func(int) *ccl.Options { return &ccl.Options{Timeout: 300 * time.Millisecond} }
	t.Run("Wait", inVirtualTime(func(t *testing.T) {
		all, gate, s := pair(t, o), make(chan struct{}), ccl.NewHostStream()
		defer close(gate)
		s.Do(func() error { <-gate; return nil })
		w := all[0].On(s).Barrier()
		ends(t, "Wait", func() { assert.Equal(t, 0, wants(t, w.Wait(t.Context()), ccl.ErrTimeout).Peer) })
	}))
	t.Run("a blocking call", inVirtualTime(func(t *testing.T) {
		all, gate, s := pair(t, o), make(chan struct{}), ccl.NewHostStream()
		defer close(gate)
		s.Do(func() error { <-gate; return nil })
		all[0].On(s).Barrier()
		ends(t, "Barrier", func() { wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrTimeout) })
	}))
	t.Run("a blocking call in Do", inVirtualTime(func(t *testing.T) {
		all, gate, s := pair(t, o), make(chan struct{}), ccl.NewHostStream()
		w := s.Do(func() error { <-gate; return ccl.Barrier(t.Context(), all[0]) })
		queued := all[0].On(s).Barrier()
		close(gate)
		ends(t, "Wait", func() {
			assert.ErrorIs(t, w.Wait(t.Context()), ccl.ErrTimeout)
			wants(t, queued.Wait(t.Context()), ccl.ErrTimeout)
		})
	}))
	t.Run("calls that come to run are in time", inVirtualTime(func(t *testing.T) {
		all := pair(t, func(int) *ccl.Options { return &ccl.Options{Timeout: time.Second} })
		for range 4 {
			var works []ccl.Work
			for _, c := range all {
				works = append(works, c.On(nil).Barrier())
			}
			for _, w := range works {
				assert.NoError(t, w.Wait(t.Context()))
			}
			time.Sleep(300 * time.Millisecond) // more than the timeout in all
		}
	}))
}

// A Wait that its context ends is this rank's.
func TestWaitGivenUp(t *testing.T) {
	inVirtualTime(func(t *testing.T) {
		all, gate, s := pair(t, nil), make(chan struct{}), ccl.NewHostStream()
		s.Do(func() error { <-gate; return nil })
		w := all[1].On(s).Barrier()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := wants(t, w.Wait(ctx), ccl.ErrCanceled)
		assert.Equal(t, []int{1, -1}, []int{e.Rank, e.Peer})
		close(gate)
		assert.NoError(t, all[0].On(nil).Barrier().Wait(t.Context()))
		assert.NoError(t, w.Wait(t.Context()))
	})(t)
}

// The calls of a failed Comm fail, as a Group and alone.
func TestGroupOnAFailedComm(t *testing.T) {
	all := pair(t, nil)
	all[1].Abort(errors.New("enough"))
	<-all[0].Done()
	q := all[0].On(nil)
	var inner ccl.Work
	w := q.Group(func(g ccl.Queue) error {
		inner = g.Send(ccl.BufOf([]int{1, 2}), 1)
		g.Send(ccl.BufOf([]int{1, 2}), 1)
		return nil
	})
	for _, w := range []ccl.Work{w, inner, q.Send(ccl.BufOf([]int{1}), 1)} {
		wants(t, w.Wait(t.Context()), ccl.ErrAborted)
	}
}

// Works of a Group wait for its calls, whatever else its function issues.
func TestGroupThatIssuesOutside(t *testing.T) {
	all := pair(t, nil)
	gate := make(chan struct{})
	var received ccl.Work
	var early error
	y := []int{0}
	issue := func(c *ccl.Comm) ccl.Work {
		q := c.On(nil)
		return q.Group(func(g ccl.Queue) error {
			q.Barrier()
			if c == all[0] {
				received = g.Recv(ccl.BufOf(y), 1)
				_, early = received.Test()
			} else {
				<-gate
				g.Send(ccl.BufOf([]int{1}), 0)
			}
			return nil
		})
	}
	sent := make(chan error, 1)
	go func() { sent <- issue(all[1]).Wait(t.Context()) }()
	issue(all[0])
	wants(t, early, ccl.ErrArgument)
	done, err := received.Test()
	assert.False(t, done)
	assert.NoError(t, err)
	close(gate)
	ends(t, "Wait", func() {
		assert.NoError(t, received.Wait(t.Context()))
		assert.Equal(t, []int{1}, y)
		assert.NoError(t, <-sent)
	})
}

// A queued call keeps its counts, though the caller uses the slice again.
func TestQueueKeepsCounts(t *testing.T) {
	all := pair(t, nil)
	var wg sync.WaitGroup
	for r, c := range all {
		wg.Go(func() {
			s, gate := ccl.NewHostStream(), make(chan struct{})
			s.Do(func() error { <-gate; return nil })
			q, counts := c.On(s), []int{1, 3}
			src, dst := make([]int, counts[r]), make([]int, 4)
			for i := range src {
				src[i] = r + 1
			}
			from, to := make([]int, 4), make([]int, 2+2*r)
			sc, dc := []int{1, 3}, []int{1, 1}
			if r == 1 {
				sc, dc = []int{1, 3}, []int{3, 3}
				to = make([]int, 6)
			}
			one := q.AllGatherV(ccl.BufOf(dst), counts, ccl.BufOf(src))
			two := q.AllToAllV(ccl.BufOf(to), dc, ccl.BufOf(from), sc)
			for _, used := range [][]int{counts, sc, dc} {
				used[0], used[1] = 1000, 1000
			}
			close(gate)
			assert.NoError(t, one.Wait(t.Context()))
			assert.NoError(t, two.Wait(t.Context()))
			assert.Equal(t, []int{1, 2, 2, 2}, dst)
		})
	}
	wg.Wait()
}

// A function that ends its goroutine says so, and stops no other.
func TestDoGoexit(t *testing.T) {
	s := ccl.NewHostStream()
	defer s.Close()
	gone, next := s.Do(func() error { runtime.Goexit(); return nil }), s.Do(func() error { return nil })
	ends(t, "Wait", func() {
		wants(t, gone.Wait(t.Context()), ccl.ErrBackend)
		assert.NoError(t, next.Wait(t.Context()))
	})
}

// What a function would read is not there where a call before it has failed or was refused. So it does not run.
func TestDoAfterAFailedCall(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func(t *testing.T, all [2]*ccl.Comm, s *ccl.HostStream) // that fails
		code ccl.Code
	}{
		{"aborted under way", func(t *testing.T, all [2]*ccl.Comm, s *ccl.HostStream) {
			w := all[0].On(s).Barrier()
			all[1].Abort(errors.New("enough"))
			wants(t, w.Wait(t.Context()), ccl.ErrAborted)
		}, ccl.ErrAborted},
		{"on a failed Comm", func(t *testing.T, all [2]*ccl.Comm, s *ccl.HostStream) {
			all[0].Abort(errors.New("enough"))
			<-all[0].Done()
			all[0].On(s).Barrier()
		}, ccl.ErrAborted},
		{"rejected", func(t *testing.T, all [2]*ccl.Comm, s *ccl.HostStream) {
			all[0].On(s).Broadcast(ccl.BufOf([]int{1}), 7)
		}, ccl.ErrArgument},
		{"on a closed Comm", func(t *testing.T, all [2]*ccl.Comm, s *ccl.HostStream) {
			q := all[0].On(s)
			all[0].Close()
			q.Barrier()
		}, ccl.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, s := pair(t, nil), ccl.NewHostStream()
			defer s.Close()
			before := s.Do(func() error { return nil })
			ran := false
			tc.call(t, all, s)
			w := s.Do(func() error { ran = true; return nil })
			ends(t, "Wait", func() {
				assert.NoError(t, before.Wait(t.Context()))
				e := wants(t, w.Wait(t.Context()), tc.code)
				assert.Contains(t, e.Error(), "Do: ")
				assert.Contains(t, e.Error(), "did not run")
			})
			assert.False(t, ran)
		})
	}
}

// The zero Queue refuses every call.
func TestZeroQueue(t *testing.T) {
	var q ccl.Queue
	for _, w := range []ccl.Work{q.Barrier(), q.AllReduce(ccl.BufOf([]int{1}), ccl.InPlace(), ccl.Sum), q.Group(func(ccl.Queue) error { return nil })} {
		wants(t, w.Wait(t.Context()), ccl.ErrArgument)
	}
}

// A Comm that has had queued calls is garbage once it is closed, whether it has failed or not: nothing looks after its
// queue any more.
func TestClosedQueueIsGarbage(t *testing.T) {
	for _, fail := range []bool{false, true} {
		var mu sync.Mutex
		var left []weak.Pointer[ccl.Comm]
		world(t, 2, nil, quiet, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			d, err := c.Split(ctx, 0, c.Rank())
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, ask(d.On(nil), []int{1}).Wait(ctx))
			if fail {
				meet(ctx) // else it ends the other rank's call
				d.Abort(errors.New("for this test"))
				<-d.Done()
			}
			assert.NoError(t, d.Close())
			mu.Lock()
			defer mu.Unlock()
			left = append(left, weak.Make(d))
		})
		assert.Len(t, left, 2)
		until(t, "a closed Comm is still held", func() bool {
			runtime.GC()
			return left[0].Value() == nil && left[1].Value() == nil
		})
	}
}
