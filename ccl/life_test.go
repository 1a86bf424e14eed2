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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// soon is what "at once" may take on a loaded machine.
const soon = 20 * time.Second

// ends fails the test if f does not return soon.
func ends(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(soon):
		stacks := make([]byte, 1<<20)
		t.Errorf("%s has not returned after %v\n%s", what, soon, stacks[:runtime.Stack(stacks, true)])
	}
}

// pair is two goroutine ranks of one host. o makes their options, nil for the default.
func pair(t testing.TB, o func(rank int) *ccl.Options) [2]*ccl.Comm {
	t.Helper()
	all, errs := newComms(2, nil, o)
	require.NoError(t, errors.Join(errs...))
	t.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
	})
	return [2]*ccl.Comm(all)
}

// users are what a Comm may be in when something ends it.
var users = []struct {
	name string
	use  func(ctx context.Context, c *ccl.Comm) error
	idle bool // none of its calls needs the other rank
}{
	{"call", func(ctx context.Context, c *ccl.Comm) error { return ccl.Barrier(ctx, c) }, false},
	{"receive", func(ctx context.Context, c *ccl.Comm) error { return ccl.Recv(ctx, c, make([]int, 1), 1) }, false},
	{"Split", func(ctx context.Context, c *ccl.Comm) error {
		n, err := c.Split(ctx, 0, 0)
		if n != nil {
			n.Close()
		}
		return err
	}, false},
	{"Shrink", func(ctx context.Context, c *ccl.Comm) error {
		n, err := c.Shrink(ctx)
		if n != nil {
			n.Close()
		}
		return err
	}, false},
	{"MakeSlice", func(ctx context.Context, c *ccl.Comm) error {
		for {
			s, err := ccl.MakeSlice[int](ctx, c, 10)
			if err != nil {
				return err
			}
			ccl.FreeSlice(s)
		}
	}, true},
	{"Queue", func(ctx context.Context, c *ccl.Comm) error { return c.On(nil).Barrier().Wait(ctx) }, false},
	{"Queue, one after the other", func(ctx context.Context, c *ccl.Comm) error {
		for {
			if err := c.On(nil).Send(ccl.BufOf([]int{1}), 1).Wait(ctx); err != nil {
				return err
			}
		}
	}, true},
	{"Queue, Test", func(ctx context.Context, c *ccl.Comm) error {
		w := c.On(nil).Barrier()
		for {
			if done, err := w.Test(); done {
				return err
			}
			runtime.Gosched()
		}
	}, false},
	{"call behind a Queue", func(ctx context.Context, c *ccl.Comm) error {
		c.On(nil).Barrier()
		return ccl.Barrier(ctx, c)
	}, false},
	{"Split behind a Queue", func(ctx context.Context, c *ccl.Comm) error {
		c.On(nil).Barrier()
		_, err := c.Split(ctx, 0, 0)
		return err
	}, false},
	{"Queue behind a busy stream", func(ctx context.Context, c *ccl.Comm) error {
		gate := make(chan struct{})
		defer close(gate)
		s := ccl.NewHostStream()
		s.Do(func() error { <-gate; return nil })
		return c.On(s).Barrier().Wait(ctx)
	}, true},
	{"call behind a busy stream", func(ctx context.Context, c *ccl.Comm) error {
		gate := make(chan struct{})
		defer close(gate)
		s := ccl.NewHostStream()
		s.Do(func() error { <-gate; return nil })
		c.On(s).Barrier()
		return ccl.Barrier(ctx, c)
	}, true},
	{"Group", func(ctx context.Context, c *ccl.Comm) error {
		return c.On(nil).Group(func(g ccl.Queue) error {
			g.Send(ccl.BufOf([]int{1}), 1)
			g.Recv(ccl.BufOf(make([]int, 1)), 1)
			return nil
		}).Wait(ctx)
	}, false},
}

// ender is what ends a Comm of rank 0.
type ender struct {
	name    string
	end     func(all [2]*ccl.Comm)
	closes  bool // OnFailure closes the Comm
	codes   []ccl.Code
	fails   bool // the Comm does, so that a Shrink still waits for the other rank
	started bool // before the use
}

// begin ends the Comm: at once, or on another goroutine, anywhere in the use that begins now.
func (e *ender) begin(all [2]*ccl.Comm) (ended chan struct{}) {
	ended = make(chan struct{})
	if e.started {
		e.end(all)
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		for range time.Now().UnixNano() % 20 {
			runtime.Gosched()
		}
		time.Sleep(time.Duration(time.Now().UnixNano() % 2_000_000))
		e.end(all)
	}()
	return ended
}

// wants has err say that the Comm has ended so.
func (e *ender) wants(t testing.TB, err error) {
	t.Helper()
	var got *ccl.Error
	if assert.ErrorAs(t, err, &got) {
		assert.Contains(t, e.codes, got.Code, "%v", err)
	}
}

// enders are all there are.
var enders = []ender{
	{"Close", func(all [2]*ccl.Comm) { all[0].Close() }, false, []ccl.Code{ccl.ErrClosed}, false, false},
	{"Close before", func(all [2]*ccl.Comm) { all[0].Close() }, false, []ccl.Code{ccl.ErrClosed}, false, true},
	{"Close on both", func(all [2]*ccl.Comm) { all[0].Close(); all[1].Close() }, false, []ccl.Code{ccl.ErrClosed}, false, false},
	{"Close of the other", func(all [2]*ccl.Comm) { all[1].Close() }, false, []ccl.Code{ccl.ErrClosed}, true, false},
	{"Abort", func(all [2]*ccl.Comm) { all[0].Abort(errors.New("enough")) }, false, []ccl.Code{ccl.ErrAborted}, true, false},
	{"Abort before", func(all [2]*ccl.Comm) { all[0].Abort(errors.New("enough")) }, false, []ccl.Code{ccl.ErrAborted}, true, true},
	{"Abort of the other", func(all [2]*ccl.Comm) { all[1].Abort(errors.New("enough")) }, false, []ccl.Code{ccl.ErrAborted}, true, false},
	{"Abort and Close", func(all [2]*ccl.Comm) { all[0].Abort(errors.New("enough")); all[0].Close() }, false, []ccl.Code{ccl.ErrAborted, ccl.ErrClosed}, false, false},
	{"OnFailure that closes", func(all [2]*ccl.Comm) { all[1].Abort(errors.New("enough")) }, true, []ccl.Code{ccl.ErrAborted, ccl.ErrClosed}, false, false},
}

// Whatever a Comm is in when it is closed or aborted, or when its OnFailure closes it, that returns soon, with an error
// that says so; and so does Close. See the rule in life.go.
func TestEveryUseEnds(t *testing.T) {
	c := newSideBySide(t)
	for _, u := range users {
		for _, e := range enders {
			switch {
			case u.name == "Shrink" && e.fails: // waits for a rank that lives
				continue
			case u.idle && e.name == "Close of the other": // fails no Comm until a call needs that rank
				continue
			}
			c.run(u.name+" and "+e.name, func(t *testing.T) {
				all := closing(t, e.closes)
				ended := e.begin(all)
				ends(t, u.name, func() { e.wants(t, u.use(t.Context(), all[0])) })
				ends(t, e.name, func() { <-ended })
				ends(t, "Close", func() { all[0].Close() })
			})
		}
	}
	c.Wait()
}

// A Comm that is closed by OnCall, which runs inside a call, is freed once the call has left it.
func TestCloseInOnCall(t *testing.T) {
	for _, queued := range []bool{false, true} {
		t.Run(fmt.Sprint("queued ", queued), inVirtualTime(func(t *testing.T) {
			var first atomic.Pointer[ccl.Comm]
			all := pair(t, func(rank int) *ccl.Options {
				o := &ccl.Options{PeerTimeout: time.Second}
				if rank == 0 {
					o.OnCall = func(ccl.Observation) { first.Load().Close() }
				}
				return o
			})
			first.Store(all[0])
			var other sync.WaitGroup
			other.Go(func() { ccl.Barrier(t.Context(), all[1]) })
			ends(t, "the call", func() {
				if queued {
					all[0].On(nil).Barrier().Wait(t.Context())
				} else {
					ccl.Barrier(t.Context(), all[0])
				}
			})
			wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrClosed)
			other.Wait()
			time.Sleep(time.Second) // a Close within a call leaves a goroutine behind for a while
		}))
	}
}

// OnCall that ends its goroutine fails the Comm, and the stream goes on.
func TestOnCallEndsItsGoroutine(t *testing.T) {
	all := pair(t, func(rank int) *ccl.Options {
		o := &ccl.Options{}
		if rank == 0 {
			o.OnCall = func(ccl.Observation) { runtime.Goexit() }
		}
		return o
	})
	go all[1].On(nil).Barrier()
	s := ccl.NewHostStream()
	w, later := all[0].On(s).Barrier(), s.Do(func() error { return nil })
	ends(t, "Wait", func() {
		wants(t, w.Wait(t.Context()), ccl.ErrBackend)
		wants(t, later.Wait(t.Context()), ccl.ErrBackend)
	})
}

// Close waits for queued calls no longer than PeerTimeout in all, and half a second.
func TestCloseTakesPeerTimeoutOnce(t *testing.T) {
	const limit = time.Second
	all := pair(t, func(int) *ccl.Options { return &ccl.Options{PeerTimeout: limit} })
	gate := make(chan struct{})
	defer close(gate)
	s := ccl.NewHostStream()
	s.Do(func() error { <-gate; return nil })
	w := all[0].On(s).Barrier()
	began := time.Now()
	ends(t, "Close", func() { all[0].Close() })
	took := time.Since(began)
	assert.GreaterOrEqual(t, took, limit, "queued calls have that time")
	assert.Less(t, took, 10*limit)
	ends(t, "Wait", func() { wants(t, w.Wait(t.Context()), ccl.ErrClosed) })
}

// A call waits for OnFailure, but not beyond its context or Options.Timeout; Close, Wait and Test do not hang either.
func TestOnFailureThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		var called atomic.Bool
		all := pair(t, func(rank int) *ccl.Options {
			return &ccl.Options{Timeout: time.Second, OnFailure: func(*ccl.Error) {
				if rank == 0 {
					called.Store(true)
					<-gate
				}
			}}
		})
		w := all[0].On(nil).Barrier()
		all[1].Abort(errors.New("enough"))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, ctx := range []context.Context{ctx, context.Background()} {
			ends(t, "Barrier", func() {
				wants(t, ccl.Barrier(ctx, all[0]), ccl.ErrAborted)
				assert.True(t, called.Load(), "OnFailure comes first")
			})
			ends(t, "Wait", func() { wants(t, w.Wait(ctx), ccl.ErrAborted) })
		}
		done, err := w.Test()
		assert.True(t, done)
		wants(t, err, ccl.ErrAborted)
		ends(t, "Split", func() { _, err := all[0].Split(ctx, 0, 0); wants(t, err, ccl.ErrAborted) })
		ends(t, "Close", func() { all[0].Close() })
	})
}

// OnFailure that takes its time is waited for.
func TestOnFailureIsWaitedFor(t *testing.T) {
	var over atomic.Bool
	all := pair(t, func(rank int) *ccl.Options {
		return &ccl.Options{OnFailure: func(*ccl.Error) {
			if rank == 0 {
				time.Sleep(200 * time.Millisecond)
				over.Store(true)
			}
		}}
	})
	all[1].Abort(errors.New("enough"))
	wants(t, ccl.Barrier(t.Context(), all[0]), ccl.ErrAborted)
	assert.True(t, over.Load())
}

// OnFailure may close a Comm whose queued call is under way, at once: Close does not wait for the call to hear of the
// failure from OnFailure.
func TestOnFailureClosesWhatIsQueued(t *testing.T) {
	var first atomic.Pointer[ccl.Comm]
	took := make(chan time.Duration, 1)
	all := pair(t, func(rank int) *ccl.Options {
		o := &ccl.Options{PeerTimeout: time.Minute}
		if rank == 0 {
			o.OnFailure = func(*ccl.Error) {
				began := time.Now()
				first.Load().Close()
				took <- time.Since(began)
			}
		}
		return o
	})
	first.Store(all[0])
	before := runtime.NumGoroutine()
	w := all[0].On(nil).Barrier()
	until(t, "the call does not begin", func() bool {
		for call := range all[0].Trace() {
			return call.State == ccl.Running
		}
		return false
	})
	all[0].Abort(errors.New("enough"))
	ends(t, "Wait", func() { wants(t, w.Wait(t.Context()), ccl.ErrAborted) })
	ends(t, "Close", func() { assert.Less(t, <-took, 10*time.Second) })
	until(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

// Comms that abort each other with their failures pass the first cause on, and do not wrap it again and again.
func TestAbortPassesTheFirstCauseOn(t *testing.T) {
	err := errors.New("disk full")
	for range 10 {
		all := pair(t, nil)
		all[0].Abort(err)
		e := wants(t, ccl.Barrier(t.Context(), all[1]), ccl.ErrAborted)
		assert.Contains(t, e.Error(), "disk full")
		assert.Equal(t, 1, strings.Count(e.Error(), "aborted"), e.Error())
		err = e
	}
}

// A Comm that is aborted with the failure of another says what happened there, in few words: a rank of the first is
// named to ranks that are not in it, however long the way.
func TestAbortNamesWhatHappenedElsewhere(t *testing.T) {
	world(t, 4, nil, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		dp, err := c.Split(ctx, c.Rank()%2, 0)
		require.NoError(t, err)
		defer dp.Close()
		dp.SetName("dp of pp=0 tp=1")
		tp, err := c.Split(ctx, c.Rank()/2, 0)
		require.NoError(t, err)
		defer tp.Close()
		tp.SetName("tp")
		x := make([]float32, 4096)
		switch c.Rank() {
		case 1: // waits for rank 3, which is late
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			e := wants(t, ccl.AllReduce(soon, dp, x, x, ccl.Sum), ccl.ErrTimeout)
			tp.Abort(e)
			meet(ctx)
			first := &ccl.Error{}
			assert.ErrorAs(t, wants(t, ccl.Barrier(ctx, tp), ccl.ErrAborted).Err, &first, "here the cause is the Error itself")
			assert.Equal(t, dp.Name(), first.Comm)
		case 0: // in no call, or that would be late as well
			<-tp.Done()
			e := wants(t, ccl.Barrier(ctx, tp), ccl.ErrAborted)
			const want = "ccl: tp: Barrier #1: aborted by rank 1: dp of pp=0 tp=1: timed out at rank 1 (world rank 3)"
			got := strings.Replace(callSite.ReplaceAllString(e.Error(), ""), "rank 0: ", "", 1)
			assert.True(t, strings.HasPrefix(got, want), got)
			meet(ctx)
		default:
			meet(ctx)
		}
	})
}

// Errors of a part of the world name it, and give the ranks of the world.
func TestErrorsOfAPart(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.Split(ctx, c.Rank()%2, 0)
		require.NoError(t, err)
		defer part.Close()
		part.SetName("odd")
		if c.Rank()%2 == 0 {
			return
		}
		if part.Rank() == 0 {
			part.Abort(errors.New("enough"))
		}
		e := wants(t, ccl.Barrier(ctx, part), ccl.ErrAborted)
		assert.Equal(t, "odd", e.Comm)
		assert.Equal(t, []int{1, 3}, e.World)
		assert.Equal(t, fmt.Sprintf("ccl: odd: rank %d (world rank %d): Barrier #1: aborted by rank 0 (world rank 1): enough", part.Rank(), c.Rank()),
			callSite.ReplaceAllString(e.Error(), ""))
	})
}
