package ccl

import (
	"context"
	"errors"
	"sync"
)

// Stream orders work: a HostStream, or a device's stream where an engine for it is
// compiled in.
type Stream interface {
	Handle() (h uintptr, ok bool) // ok is false once closed; 0 is a valid handle
}

// HostStream is a first-in first-out queue on the host with the meaning of a device
// stream: calls of several Comms and functions run in the order they were issued.
// A program written for device streams runs on it unchanged, on any machine.
type HostStream struct {
	mu     sync.Mutex
	ended  sync.Cond
	tasks  []task
	issued uint64
	ran    uint64
	errs   map[uint64]error // of Do
	busy   bool             // a goroutine works on tasks
	closed bool
}

// task is a function of Do, or calls of a Comm.
type task struct {
	f     func() error
	c     *Comm
	group *group
}

// NewHostStream returns an empty queue.
func NewHostStream() *HostStream {
	s := &HostStream{}
	s.ended.L = &s.mu
	return s
}

// Handle is 0; ok is false once s is closed.
func (s *HostStream) Handle() (uintptr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 0, !s.closed
}

var errStreamClosed = errors.New("the HostStream is closed")

// Do runs f after all that was issued before. Wait on the Work returns f's error, as
// the cause of an Error with the Code ErrBackend.
func (s *HostStream) Do(f func() error) Work {
	seq, ok := s.push(task{f: f})
	if !ok {
		return Work{err: &Error{Code: ErrClosed, Op: "Do", Rank: -1, Peer: -1, Err: errStreamClosed}}
	}
	return Work{at: s, seq: seq}
}

// push adds a task, and starts a goroutine for the tasks if there is none.
func (s *HostStream) push(t task) (seq uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	s.issued++
	s.tasks = append(s.tasks, t)
	if !s.busy {
		s.busy = true
		go s.work()
	}
	return s.issued, true
}

// work runs tasks until there are none: an idle stream has no goroutine.
func (s *HostStream) work() {
	s.mu.Lock()
	for len(s.tasks) > 0 {
		t := s.tasks[0]
		s.tasks[0] = task{}
		s.tasks = s.tasks[1:]
		s.mu.Unlock()
		var err error
		if t.f != nil {
			err = t.f()
		} else {
			t.c.runQueued(t.group)
		}
		s.mu.Lock()
		s.ran++
		if err != nil {
			if s.errs == nil {
				s.errs = map[uint64]error{}
			}
			s.errs[s.ran] = err
		}
		s.ended.Broadcast()
	}
	s.tasks = nil
	s.busy = false
	s.mu.Unlock()
}

// wait waits for task seq.
func (s *HostStream) wait(ctx context.Context, seq uint64) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ran < seq {
		if err := ctx.Err(); err != nil {
			return waitError(err)
		}
		s.ended.Wait()
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

// result is task seq's error. s.mu is held.
func (s *HostStream) result(seq uint64) error {
	if err := s.errs[seq]; err != nil {
		return &Error{Code: ErrBackend, Op: "Do", Rank: -1, Peer: -1, Err: err}
	}
	return nil
}

func waitError(err error) *Error {
	code := ErrCanceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = ErrTimeout
	}
	return &Error{Code: code, Op: "Wait", Rank: -1, Peer: -1, Err: err}
}

// Close lets what was issued end, and takes no more.
func (s *HostStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
