package ccltest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// rank is one rank's testing.TB: the test's, but for what must concern this rank
// alone.
type rank struct {
	testing.TB // what is common to all
	log        *log
	number     int
	host       *simnet.Host // nil: this one
	ctx        context.Context
	cancel     context.CancelFunc

	comm     atomic.Pointer[ccl.Comm]
	hasFail  atomic.Bool
	hasTold  atomic.Bool // why it failed
	hasSkip  atomic.Bool
	killed   atomic.Bool // by Kill: what it reports is of no interest
	ended    atomic.Bool
	left     chan struct{} // closed with ended
	mu       sync.Mutex
	cleanups []func()
}

func newRank(l *log, number int, host *simnet.Host) *rank {
	r := &rank{TB: l.TB, log: l, number: number, host: host, left: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(at(l.Context(), host))
	return r
}

// mark begins the cause with which a failed rank aborts the others.
const mark = "ccltest: "

// live is a rank's life.
func (r *rank) live(w *world, b ccl.Bootstrap) {
	r.TB.Helper()
	defer close(r.left)
	defer r.ended.Store(true)
	defer r.cancel()
	c, err := w.join(r.ctx, b, r)
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	if err != nil {
		r.report("NewComm: %v", err)
		return
	}
	r.comm.Store(c)
	go r.listen(c)
	defer r.close(c)
	r.guard(func() { w.f(r, c) })
	r.clean()
	r.tell()
}

// tell aborts the others' calls if this rank has failed.
func (r *rank) tell() {
	if c := r.comm.Load(); c != nil && r.hasFail.Load() && !r.killed.Load() {
		c.Abort(fmt.Errorf("%srank %d failed", mark, r.number))
	}
}

// leave ends the rank's function. The others are told before what it has deferred closes Comms,
// whose end would surprise them.
func (r *rank) leave() {
	r.tell()
	runtime.Goexit()
}

// guard calls f and takes note of how it ended, on a goroutine of its own that Goexit
// may end.
func (r *rank) guard(f func()) {
	r.TB.Helper()
	done := make(chan struct{})
	go func() {
		r.TB.Helper()
		defer close(done)
		returned := false
		defer func() {
			switch p := recover(); {
			case p != nil:
				r.report("panic: %v\n\n%s", p, debug.Stack())
			case !returned && !r.hasFail.Load() && !r.hasSkip.Load() && !r.killed.Load():
				r.report("ended by runtime.Goexit")
			}
		}()
		f()
		returned = true
	}()
	<-done
}

// listen ends the rank's Context when another rank has failed its test.
func (r *rank) listen(c *ccl.Comm) {
	select {
	case <-c.Done():
		if byTest(c.Err()) {
			r.cancel()
		}
	case <-r.ctx.Done():
	}
}

// byTest reports whether err is a Comm's end because a rank has failed its test.
func byTest(err error) bool {
	var e *ccl.Error
	return errors.As(err, &e) && e.Code == ccl.ErrAborted && e.Err != nil && strings.HasPrefix(e.Err.Error(), mark)
}

func (r *rank) close(c *ccl.Comm) {
	r.TB.Helper()
	if err := c.Close(); err != nil && !r.hasFail.Load() {
		r.report("Close: %v", err)
	}
}

// clean runs what Cleanup was given, last first.
func (r *rank) clean() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		r.guard(f)
	}
}

func (r *rank) abort(cause error) {
	if c := r.comm.Load(); c != nil {
		c.Abort(cause)
	}
	r.cancel()
}

func (r *rank) outcome() outcome {
	switch {
	case r.hasTold.Load():
		return failed
	case r.hasFail.Load():
		return felled
	case r.hasSkip.Load():
		return skipped
	}
	return passed
}

// report takes down a failure, and prints it unless it follows from another rank's.
func (r *rank) report(format string, args ...any) {
	r.TB.Helper()
	if r.killed.Load() || r.host != nil && r.host.Ended() {
		return
	}
	r.hasFail.Store(true)
	if c := r.comm.Load(); c != nil && byTest(c.Err()) {
		return
	}
	r.hasTold.Store(true)
	r.log.write(func() {
		r.TB.Helper()
		r.TB.Errorf("rank %d: %s", r.number, fmt.Sprintf(format, args...))
	})
}

func line(args []any) string { return strings.TrimSuffix(fmt.Sprintln(args...), "\n") }

// What follows is testing.TB.

func (r *rank) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *rank) Context() context.Context { return r.ctx }

func (r *rank) Error(args ...any) { r.TB.Helper(); r.report("%s", line(args)) }

func (r *rank) Errorf(format string, args ...any) { r.TB.Helper(); r.report(format, args...) }

func (r *rank) Fail() { r.TB.Helper(); r.report("failed") }

func (r *rank) FailNow() {
	r.TB.Helper()
	if !r.hasFail.Load() {
		r.report("failed")
	}
	r.leave()
}

func (r *rank) Failed() bool { return r.hasFail.Load() }

func (r *rank) Fatal(args ...any) { r.TB.Helper(); r.report("%s", line(args)); r.leave() }

func (r *rank) Fatalf(format string, args ...any) {
	r.TB.Helper()
	r.report(format, args...)
	r.leave()
}

func (r *rank) Log(args ...any) { r.TB.Helper(); r.Logf("%s", line(args)) }

func (r *rank) Logf(format string, args ...any) {
	r.TB.Helper()
	r.log.write(func() {
		r.TB.Helper()
		r.TB.Logf("rank %d: %s", r.number, fmt.Sprintf(format, args...))
	})
}

func (r *rank) Skip(args ...any) { r.TB.Helper(); r.Log(args...); r.SkipNow() }

func (r *rank) Skipf(format string, args ...any) {
	r.TB.Helper()
	r.Logf(format, args...)
	r.SkipNow()
}

func (r *rank) SkipNow() {
	r.hasSkip.Store(true)
	runtime.Goexit()
}

func (r *rank) Skipped() bool { return r.hasSkip.Load() }
