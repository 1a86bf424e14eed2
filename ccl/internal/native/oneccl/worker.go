//go:build oneccl && cgo && linux

package oneccl

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

// worker makes all of a process's calls of oneCCL, one after another. It is a goroutine, not a thread: handing over
// a call costs a switch of goroutines on the same thread, which is some 200 ns, not a wake-up.
type worker struct {
	jobs  chan *job
	mu    sync.Mutex
	stuck int           // jobs that were given up and have not come back
	lost  chan struct{} // closed while there are such
}

// job is something to do inside the library.
type job struct {
	do    func()
	done  chan struct{} // has room for one
	state atomic.Int32
	hold  func() []unsafe.Pointer // what do may still write to when it is given up; may be nil
	keep  []unsafe.Pointer        // keeps that from the garbage collector
}

// States of a job.
const (
	idle int32 = iota
	running
	ended
	givenUp
)

func newJob(do func()) *job { return &job{do: do, done: make(chan struct{}, 1)} }

func newWorker() *worker {
	w := &worker{jobs: make(chan *job), lost: make(chan struct{})}
	go func() {
		for j := range w.jobs {
			j.do()
			if !j.state.CompareAndSwap(running, ended) { // nobody waits any more
				j.keep = nil
				w.mu.Lock()
				w.note(-1)
				w.mu.Unlock()
				continue
			}
			j.done <- struct{}{}
		}
	}()
	return w
}

var (
	errStuck   = errors.New("an abandoned call is still inside oneCCL, which cannot be interrupted: this process cannot make another call")
	errGivenUp = errors.New("the call was abandoned: it cannot be interrupted, and its thread stays inside oneCCL")
	errNotMade = errors.New("the call was not made")
)

// note counts n more jobs that were given up. What waits for its turn behind the first is let go. w.mu is held.
func (w *worker) note(n int) {
	was := w.stuck
	w.stuck += n
	switch {
	case was == 0 && w.stuck > 0:
		close(w.lost)
	case was > 0 && w.stuck == 0:
		w.lost = make(chan struct{})
	}
}

// given is closed while a job that was given up is inside the library.
func (w *worker) given() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// run does j, and returns when it is done or stop is closed, whichever is first. A job that has
// been given up may not be run again.
func (w *worker) run(j *job, stop <-chan struct{}) error {
	lost := w.given()
	select {
	case <-lost:
		return errStuck
	default:
	}
	j.state.Store(running)
	select {
	case w.jobs <- j:
	case <-lost:
		j.state.Store(idle)
		return errStuck
	case <-stop:
		j.state.Store(idle)
		return errNotMade
	}
	select {
	case <-j.done:
		return nil
	case <-stop:
		return w.giveUp(j)
	}
}

// giveUp leaves j to itself, unless it is done.
func (w *worker) giveUp(j *job) error {
	if j.hold != nil {
		j.keep = j.hold()
	}
	w.mu.Lock()
	given := j.state.CompareAndSwap(running, givenUp)
	if given { // only then: what waits behind a job that is done gets its turn
		w.note(1)
	}
	w.mu.Unlock()
	if given {
		return errGivenUp
	}
	j.keep = nil
	<-j.done
	return nil
}
