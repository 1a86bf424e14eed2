package ccl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/lived"
)

// Stream orders work: a HostStream, or a device's stream where an engine for it is
// compiled in.
type Stream interface {
	Handle() (h uintptr, ok bool) // ok is false once closed; 0 is a valid handle
}

// HostStream is a first-in first-out queue on the host that behaves like a device stream: calls of
// several Comms and functions run in the order in which they were issued. A program written for
// device streams runs on it unchanged, on any machine. The zero HostStream is an empty queue, ready
// to use.
//
// One goroutine at a time issues to it, calls and functions: another that comes meanwhile gets
// ErrArgument.
//
// Functions rely on the calls before them. So after a call on the stream has failed, Do runs no
// function any more: continue with another HostStream. Calls of other Comms still run, since other
// ranks wait for them.
type HostStream struct {
	mu     sync.Mutex
	ended  bell
	tasks  []task // from first on
	first  int
	start  func() // work
	issued uint64
	ran    uint64
	errs   map[uint64]*Error    // of Do
	after  map[uint64]callbacks // of Work.OnDone of what Do runs
	busy   bool                 // a goroutine works on tasks
	rests  bool                 // but has none
	closed bool

	pushing  uint64 // 1 while a goroutine is in push
	failed   *Error // the first call that failed
	failedAt uint64 // which task it was
}

// task is a function of Do, calls of a Comm, or a call that was refused.
type task struct {
	f     func() error
	group *group
	err   *Error
}

// NewHostStream returns an empty queue.
func NewHostStream() *HostStream {
	return &HostStream{}
}

// Handle returns 0. ok is false once s is closed.
func (s *HostStream) Handle() (uintptr, bool) {
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return 0, !s.closed
}

var (
	errStreamClosed = errors.New("the HostStream is closed")
	errStreamInUse  = errors.New("another goroutine is issuing to the HostStream. One goroutine owns it, or several take turns")
	errNilStream    = errors.New("the HostStream is nil; NewHostStream makes one")
	errNilFunction  = errors.New("the function is nil")
	errGoexit       = errors.New("the function has ended its goroutine (runtime.Goexit, as t.FailNow does)")
)

// Do runs f after everything that was issued before. Wait on the Work returns f's error as the
// cause of an Error with the Code ErrBackend. If an earlier call on s has failed, f does not run,
// and Wait returns that failure.
func (s *HostStream) Do(f func() error) Work {
	switch {
	case s == nil:
		return refuseDo(ErrArgument, errNilStream)
	case f == nil:
		return refuseDo(ErrArgument, errNilFunction)
	}
	seq, err := s.push(task{f: f})
	if err != nil {
		return refuseDo(streamCode(err), err)
	}
	return Work{at: s, seq: seq}
}

// refuseDo is the Work of a function that never runs.
func refuseDo(code Code, err error) Work {
	return Work{err: &Error{Code: code, Op: "Do", Rank: -1, Peer: -1, Err: err}}
}

// streamCode is the code of why push does not take a task.
func streamCode(err error) Code {
	if err == errStreamClosed {
		return ErrClosed
	}
	return ErrArgument
}

// push adds a task, and returns its number, unless s is closed or another goroutine is found in
// push. It starts a goroutine for the tasks if there is none. With one processor it gives way to
// that, which else would not begin before the caller blocks.
func (s *HostStream) push(t task) (seq uint64, err error) {
	if !s.mu.TryLock() {
		if t.err == nil && atomic.LoadUint64(&s.pushing) != 0 {
			return 0, errStreamInUse
		}
		s.mu.Lock()
	}
	if s.closed {
		s.mu.Unlock()
		return 0, errStreamClosed
	}
	ordered.Store(&s.pushing, 1)
	s.issued++
	seq = s.issued
	if s.first > cap(s.tasks)/2 && len(s.tasks) == cap(s.tasks) {
		n := copy(s.tasks, s.tasks[s.first:])
		clear(s.tasks[n:])
		s.tasks, s.first = s.tasks[:n], 0
	}
	s.tasks = append(s.tasks, t)
	begins := !s.busy || s.rests
	if s.rests = false; !s.busy {
		if s.busy = true; s.start == nil {
			s.start = s.work
		}
		go s.start()
	}
	ordered.Store(&s.pushing, 0)
	s.mu.Unlock()
	if begins && runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
	return seq, nil
}

// work runs tasks until there are none. It looks a few times before it ends, since the next is often close behind, and
// waking a thread for it costs more.
func (s *HostStream) work() {
	done := false
	defer func() {
		if !done { // the task has ended this goroutine; the others need one
			go s.work()
		}
	}()
	s.mu.Lock()
	for i := 0; ; i++ {
		for s.first < len(s.tasks) {
			t := s.tasks[s.first]
			s.tasks[s.first] = task{}
			if s.first++; s.first == len(s.tasks) {
				s.tasks, s.first = s.tasks[:0], 0
			}
			skip := s.failed != nil
			s.mu.Unlock()
			s.run(t, skip)
			s.mu.Lock()
			i = 0
		}
		if i == glances {
			break
		}
		s.rests = true
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.busy, s.rests = false, false
	done = true
	s.mu.Unlock()
}

// run runs one task; skip says that a function is not to run.
func (s *HostStream) run(t task, skip bool) {
	err := errGoexit
	defer func() {
		s.mu.Lock()
		s.ran++
		failed := t.err
		if t.group != nil {
			failed = t.group.failure
		}
		if failed != nil && s.failed == nil {
			s.failed, s.failedAt = failed, s.ran
		}
		if t.f != nil && err != nil {
			if s.errs == nil {
				s.errs = map[uint64]*Error{}
			}
			s.errs[s.ran] = &Error{Code: ErrBackend, Op: "Do", Rank: -1, Peer: -1, Err: err, loss: new(loss)}
		}
		s.ended.ring()
		owed, result := s.owed(s.ran)
		s.mu.Unlock()
		if t.group != nil {
			t.group.free()
		}
		owed.run(result)
	}()
	switch {
	case t.err != nil:
	case t.group != nil:
		t.group.c.backlog.run(t.group)
	case skip:
		err = nil
	default:
		err = t.f()
	}
}

// wait waits for task seq.
func (s *HostStream) wait(ctx context.Context, seq uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended.wait(&s.mu, ctx.Done(), func() bool { return s.ran >= seq }) {
		return waitError(ctx.Err(), nil)
	}
	return s.result(seq)
}

// test reports whether task seq has ended.
func (s *HostStream) test(seq uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ran < seq {
		return false, nil
	}
	return true, s.result(seq)
}

// result is the error of task seq, a function. s.mu is held.
func (s *HostStream) result(seq uint64) error {
	if e := s.failed; e != nil && seq > s.failedAt {
		return notRun(e)
	}
	if err := s.errs[seq]; err != nil {
		return err
	}
	return nil
}

// owed takes the functions that the end of task seq owes, with its error. s.mu is held.
func (s *HostStream) owed(seq uint64) (fs callbacks, err error) {
	if fs = s.after[seq]; fs != nil {
		delete(s.after, seq)
		err = s.result(seq)
	}
	return fs, err
}

// notRun is the error of a function that did not run since a call before it on its stream failed with e.
func notRun(e *Error) *Error {
	return &Error{Code: e.Code, Op: "Do", Rank: e.Rank, Peer: e.Peer, Missing: e.Missing, Comm: e.Comm, World: e.World,
		loss: e.loss,
		Err:  fmt.Errorf("the function did not run, because an earlier call on its stream failed: %w", brief{e})}
}

// Close takes no more, and waits for what was issued to end, at most 5 seconds. What has not ended by
// then runs all the same. Close does not wait where it is called by OnFailure, OnDone or OnCall, or in
// a function of Do, nor in a forked child.
//
// Its error is what has failed on s without the program being told: a function whose Work nobody has
// asked, or the first call that failed, if nothing has returned the failure of its Comm.
func (s *HostStream) Close() error {
	if s == nil || proc.Forked() { // in a child its lock may be held for ever
		return nil
	}
	return take(s.end(defaultPeerTimeout)...)
}

// end is Close within a limit. It returns all errors of s that may not have been given, in the order of what failed.
func (s *HostStream) end(limit time.Duration) (errs []*Error) {
	ctx, cancel := lived.Within(context.Background(), limit)
	defer cancel()
	if limit <= 0 || calledBack() {
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.ended.wait(&s.mu, ctx.Done(), func() bool { return s.ran == s.issued })
	for _, seq := range slices.Sorted(maps.Keys(s.errs)) {
		errs = append(errs, s.errs[seq])
	}
	return append(errs, s.failed)
}
