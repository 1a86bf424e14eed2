package ccltest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// Run runs f as each of n ranks, and returns when all have returned. It ends the test
// as failed if a rank fails or panics, or is not done in time.
//
// A rank's t is its own: FailNow ends the rank, Cleanup runs when the rank ends, and
// Context ends when another rank has failed. c is closed when f returns.
func Run(t testing.TB, n int, f func(t testing.TB, c *ccl.Comm), opts ...Option) {
	t.Helper()
	w, err := newWorld(n, f, opts)
	if err == nil {
		err = w.checkFaults(t)
	}
	if err != nil {
		t.Fatalf("ccltest: %v", err)
	}
	call := callOf(t)
	switch {
	case isProcess && call == thisCall:
		w.asProcess(t)
	case isProcess:
	case w.processes != nil:
		w.spawn(t, call)
	default:
		w.inVirtualTime(t, w.asGoroutines)
	}
}

// asGoroutines runs all ranks in this process.
func (w *world) asGoroutines(t testing.TB) {
	t.Helper()
	var hosts []string
	if w.hostOf != nil {
		for r := range w.n {
			hosts = append(hosts, w.hostID(r))
		}
	}
	var seats []ccl.Bootstrap
	for _, b := range boot.Local(w.n, hosts...) {
		defer b.Close()
		seats = append(seats, b)
	}
	switch w.run(t, seats) {
	case failed, felled:
		t.FailNow()
	case skipped:
		t.SkipNow()
	}
}

// outcome is how the ranks of a process have ended, the worst of them.
type outcome int

const (
	passed outcome = iota
	skipped
	felled // by the failure of another
	failed
)

// run runs the ranks of this process.
func (w *world) run(t testing.TB, seats []ccl.Bootstrap) outcome {
	t.Helper()
	l := &log{TB: t}
	ranks := make([]*rank, len(seats))
	var all sync.WaitGroup
	for i, b := range seats {
		r := newRank(l, b.Rank(), w.host(b.Rank()))
		ranks[i] = r
		all.Go(func() { r.live(w, b) })
	}
	done := make(chan struct{})
	go func() {
		if w.sim != nil {
			w.sim.beside(t.Context(), ranks)
		}
		all.Wait()
		close(done)
	}()
	limit := time.NewTimer(w.deadline)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		l.late(w.deadline, ranks)
		for _, r := range ranks {
			r.abort(fmt.Errorf("%snot done after %v", mark, w.deadline))
		}
		select { // they may do without this, so that nothing is left behind
		case <-done:
		case <-time.After(grace):
		}
		l.close()
		return failed
	}
	worst := passed
	for _, r := range ranks {
		worst = max(worst, r.outcome())
	}
	return worst
}

// grace is how long ranks have to end once they are told to.
const grace = 5 * time.Second

// log is the test's TB as the ranks of this process share it.
type log struct {
	testing.TB
	mu     sync.Mutex
	closed bool // ranks that have been given up may not write: the test is over
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// write calls f unless the test is over.
func (l *log) write(f func()) {
	l.TB.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		f()
	}
}

// late reports the ranks that are not done, and where they are.
func (l *log) late(limit time.Duration, ranks []*rank) {
	var late []int
	for _, r := range ranks {
		if !r.ended.Load() {
			late = append(late, r.number)
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	l.write(func() {
		l.TB.Helper()
		l.TB.Errorf("ccltest: not done after %v: ranks %v\n\n%s", limit, late, stacks)
	})
}

// join makes the Comm of the rank that b is.
func (w *world) join(ctx context.Context, b ccl.Bootstrap, r *rank) (*ccl.Comm, error) {
	ctx, cancel := context.WithTimeout(ctx, w.deadline)
	defer cancel()
	if w.sim != nil {
		met, err := w.meet(ctx, b.Rank())
		if err != nil {
			return nil, err
		}
		defer met.Close()
		b = met
	}
	o := w.options
	return ccl.NewComm(ctx, w.disturbed(b, r), &o)
}
