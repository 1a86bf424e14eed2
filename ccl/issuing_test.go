package ccl_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

const ownsTheQueue = "One goroutine at a time may use a Comm and its Queues: Split, or one goroutine that owns the Queue"

// A goroutine that issues while another one does is refused, on whichever stream, and its Comm fails on all ranks: the order of its
// calls is not known any more.
func TestIssueBesideAnother(t *testing.T) {
	for name, issue := range map[string]func(c *ccl.Comm) ccl.Work{
		"a call":            func(c *ccl.Comm) ccl.Work { return ask(c.On(nil), []int{1}) },
		"a call on its own": func(c *ccl.Comm) ccl.Work { return ask(c.On(ccl.NewHostStream()), []int{1}) },
		"a Group":           func(c *ccl.Comm) ccl.Work { return c.On(nil).Group(func(ccl.Queue) error { return nil }) },
		"a call in a Group": func(c *ccl.Comm) ccl.Work {
			return c.On(nil).Group(func(g ccl.Queue) error { ask(g, []int{1}); return nil })
		},
		"a Group that is on Now": func(c *ccl.Comm) ccl.Work {
			return c.On(ccl.Now).Group(func(g ccl.Queue) error { g.Barrier(); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := pair(t, nil)
			release := ccl.HoldIssue(all[0])
			w := issue(all[0])
			release()
			e := wants(t, w.Wait(t.Context()), ccl.ErrArgument)
			assert.ErrorContains(t, e, "another goroutine is issuing a call on this Comm; this one is at ccl/")
			assert.ErrorContains(t, e, ownsTheQueue)
			e = wants(t, ask(all[1].On(nil), []int{1}).Wait(t.Context()), ccl.ErrMismatch)
			assert.Equal(t, 0, e.Peer)
		})
	}
}

// A blocking call that waits for what is queued is one that others are not to queue behind; nor may it come while another goroutine
// issues. That one is refused as blocking calls are: the Comm is good.
func TestIssueBesideABlockingCall(t *testing.T) {
	all, gate, s := pair(t, nil), make(chan struct{}), ccl.NewHostStream()
	s.Do(func() error { <-gate; return nil })
	all[0].On(s).Send(ccl.BufOf([]int{1}), 1)
	release := ccl.HoldIssue(all[0])
	assert.ErrorContains(t, wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrArgument), ownsTheQueue)
	release()
	var waits sync.WaitGroup
	waits.Go(func() { wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrMismatch) })
	until(t, "the call does not wait", func() bool { return ccl.IsIssuing(all[0]) })
	w := all[0].On(nil).Barrier()
	close(gate)
	wants(t, w.Wait(t.Context()), ccl.ErrArgument)
	ends(t, "Barrier", waits.Wait)

	all = pair(t, nil)
	waits.Go(func() { wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrMismatch) })
	sleeps(t, all[0])
	assert.ErrorContains(t, wants(t, all[0].On(nil).Barrier().Wait(t.Context()), ccl.ErrArgument), "this Comm is in a call of another goroutine, Barrier #1 at ccl/issuing_test.go:")
	ends(t, "Barrier", waits.Wait)
}

// A HostStream, too, takes from one goroutine at a time: functions, and calls of several Comms.
func TestPushBesideAnother(t *testing.T) {
	all, s := pair(t, nil), ccl.NewHostStream()
	release := ccl.HoldPush(s)
	w, x := s.Do(func() error { return nil }), all[0].On(s).Barrier()
	release()
	for _, w := range []ccl.Work{w, x} {
		assert.ErrorContains(t, wants(t, w.Wait(t.Context()), ccl.ErrArgument), "another goroutine is issuing to the HostStream")
	}
	assert.NoError(t, s.Do(func() error { return nil }).Wait(t.Context()))
}

// Goroutines that take turns, in the same order on all ranks, may share a Queue.
func TestQueueTakenInTurns(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		const goroutines, rounds = 4, 50
		var turn [goroutines]chan struct{}
		for g := range turn {
			turn[g] = make(chan struct{}, 1)
		}
		turn[0] <- struct{}{}
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for range rounds {
					<-turn[g]
					x := []int{g}
					w := ask(c.On(nil), x)
					turn[(g+1)%goroutines] <- struct{}{}
					assert.NoError(t, w.Wait(ctx))
					assert.Equal(t, g*c.Size(), x[0])
				}
			})
		}
		all.Wait()
	})
}

// Goroutines that share a Queue and take no turns give ranks the sums of each other. They do not get them for good: one of them is
// refused, and then all get an error.
func TestQueueOfManyGoroutines(t *testing.T) {
	if raceDetector {
		t.Skip("the program is wrong, and the race detector says so")
	}
	for name, stream := range map[string]func() *ccl.HostStream{
		"one stream":   func() *ccl.HostStream { return nil },
		"streams each": ccl.NewHostStream,
	} {
		t.Run(name, func(t *testing.T) {
			all := pair(t, nil)
			var wrong, refused, failed atomic.Int64
			var every sync.WaitGroup
			for _, c := range all {
				for g := range 4 {
					every.Go(func() {
						q := c.On(stream())
						for range 500 {
							x := []int{g}
							err := ask(q, x).Wait(t.Context())
							var e *ccl.Error
							switch {
							case errors.As(err, &e) && e.Code == ccl.ErrArgument:
								refused.Add(1)
								return
							case err != nil:
								failed.Add(1)
								return
							case x[0] != 2*g:
								wrong.Add(1)
							}
						}
					})
				}
			}
			ends(t, "the calls", every.Wait)
			t.Logf("%d wrong sums, %d goroutines were refused, %d heard of it", wrong.Load(), refused.Load(), failed.Load())
			require.NotZero(t, refused.Load())
		})
	}
}
