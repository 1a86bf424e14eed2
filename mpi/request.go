package mpi

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/backoff"
)

// Status is what came of a Recv: who sent how many elements with which tag.
type Status struct{ Source, Tag, Count int }

// Request is a call under way.
type Request struct {
	comm  *Comm
	mu    sync.Mutex // guards what follows
	call  Call
	parts []part // what MPI has under way for it, in order
	pin   runtime.Pinner
	hold  [2]unsafe.Pointer // the call's memory, also where only its address was given
	cause error             // why it was cancelled
	done  bool
	st    Status
	err   error
}

// live are the requests that are not complete. It keeps them, and so the memory they pin, whatever
// becomes of the caller's reference; of those that are lost the context ended.
var live = struct {
	sync.Mutex
	all   map[*Request]lost
	apart []*apart // those that were given up
}{all: map[*Request]lost{}}

type lost bool

func (r *Request) keep() {
	live.Lock()
	defer live.Unlock()
	live.all[r] = false
}

// Abandoned counts the calls whose contexts ended, that MPI could not take back, and that are still
// under way. While there are any Finalize refuses, since MPI would wait for them.
func Abandoned() int {
	live.Lock()
	var given []*Request
	for r, lost := range live.all {
		if lost {
			given = append(given, r)
		}
	}
	live.Unlock()
	n := inside()
	for _, r := range given {
		if done, _, _ := r.Test(); !done {
			n++
		}
	}
	return n
}

// start begins k, whose memory stays pinned until it is complete.
func (c *Comm) start(k *Call) (r *Request, large bool, err error) {
	if err := c.ready(k.Kind.String()); err != nil {
		return nil, false, err
	}
	r = &Request{comm: c, call: *k, hold: k.memory()}
	halves := []Call{*k}
	if k.Kind == KindSendRecv && !startsSendRecv {
		recv, send := k.halves()
		halves = []Call{recv, send}
	}
	for _, p := range k.keep {
		if p != nil {
			r.pin.Pin(p)
		}
	}
	r.keep()
	for i := range halves {
		if large, err := r.add(&halves[i]); err != nil || large {
			r.withdraw(halves[0].Kind, err)
			return nil, large, err
		}
	}
	return r, false, nil
}

// withdraw ends r, of which not all could be started because of err: what has been is of kind, the Recv of a SendRecv.
func (r *Request) withdraw(kind Kind, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 {
		r.forget()
		return
	}
	r.call.Kind = kind
	if r.cancel(err); !r.done {
		_ = r.abandon(err)
	}
}

// add starts k.
func (r *Request) add(k *Call) (large bool, err error) {
	p, large, err := r.comm.begin(k)
	if !large && err == nil {
		r.parts = append(r.parts, p)
	}
	return large, err
}

// forget lets go of r's memory.
func (r *Request) forget() {
	r.done = true
	r.pin.Unpin()
	live.Lock()
	delete(live.all, r)
	live.Unlock()
}

// Test reports whether the call is complete, and what came of it. It does not block.
func (r *Request) Test() (done bool, st Status, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.test(false)
}

// test looks after the parts in order; the status is the sum of those that received. It waits
// inside MPI if told to.
func (r *Request) test(wait bool) (bool, Status, error) {
	for !r.done && len(r.parts) > 0 {
		if process.phase.Load() != running {
			return false, Status{}, notRunning(r.call.Kind.String())
		}
		done, st, err := r.comm.test(&r.parts[0], wait)
		if !done && err == nil {
			return false, Status{}, nil
		}
		switch {
		case err != nil:
			retain(&r.call)
			r.err = cmp.Or(r.err, err)
		case st.Source == cancelled:
			r.err = &Error{Op: r.call.Kind.String(), Class: ErrAbandoned, Text: "cancelled, nothing received", Err: r.cause}
		case r.parts[0].receives():
			r.st = st
		}
		r.parts = r.parts[1:]
	}
	if !r.done {
		r.forget()
	}
	return true, r.st, r.err
}

// Wait returns when the call is complete. If ctx ends first, a receive is cancelled; any other
// call goes on, its memory stays pinned, and Wait may be called again.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Done() == nil && process.level == Multiple {
		_, st, err := r.test(true)
		return st, err
	}
	st, err, ended := r.poll(ctx)
	if !ended {
		return st, err
	}
	return Status{}, &Error{Op: r.call.Kind.String(), Class: ErrAbandoned, Text: "the wait ended, but the call goes on",
		Err: ctx.Err()}
}

// poll tests until r is done, or ctx has ended and r cannot be taken back. It yields at first, and
// then sleeps for up to a millisecond, so that goroutines that wait leave the processors to what
// they wait for.
func (r *Request) poll(ctx context.Context) (st Status, err error, ended bool) {
	wait := backoff.Sleep{First: time.Microsecond, Most: time.Millisecond}
	for i := 0; ; i++ {
		done, st, err := r.test(false)
		if done || err != nil {
			return st, err, false
		}
		if err := ctx.Err(); err != nil {
			r.cancel(err)
			return r.st, r.err, !r.done
		}
		if i < 100 {
			runtime.Gosched()
			continue
		}
		wait.Next()
	}
}

// cancel takes a receive back because of cause. r is done then, with the message where that was faster, or
// with an error; or the library does not take it back at once, and r goes on.
func (r *Request) cancel(cause error) {
	if r.call.Kind != KindRecv {
		return
	}
	if r.cause == nil {
		r.cause = cause
		for i := range r.parts {
			r.parts[i].cancel()
		}
	}
	for range 1000 { // MPI says that a cancelled receive ends without the sender
		if done, _, _ := r.test(false); done {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// cancelled is the source of a message that was not received.
const cancelled = -3

// abandon gives r up because of err: it goes on inside MPI, and its communicator is done for.
func (r *Request) abandon(err error) error {
	live.Lock()
	live.all[r] = true
	live.Unlock()
	return r.comm.lose(r.call.Kind, err)
}

// lose ends the use of c, in which MPI goes on with a call of kind k that was given up because of err.
func (c *Comm) lose(k Kind, err error) error {
	e := &Error{Op: k.String(), Class: ErrAbandoned,
		Text: "abandoned, but MPI cannot cancel it: this communicator can no longer be used", Err: err}
	c.broken.CompareAndSwap(nil, e)
	return e
}

// Abandon gives up a call that is under way, since another that belongs to it has failed. It goes on inside MPI,
// which keeps its memory; the communicator cannot be used any longer.
func (r *Request) Abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done, _, _ := r.test(false); !done {
		_ = r.abandon(nil)
	}
}

// retained is the memory of collectives that failed inside MPI: a library may leave receives into it posted, and
// tells nobody when they are done. So it is kept for good.
var retained = struct {
	sync.Mutex
	all map[unsafe.Pointer]struct{}
}{all: map[unsafe.Pointer]struct{}{}}

// retain keeps the memory of k, which has failed. Of a message nothing is left under way.
func retain(k *Call) {
	if k.Kind == KindBarrier || k.Kind.message() || k.Kind == kindDup {
		return
	}
	retained.Lock()
	defer retained.Unlock()
	for _, p := range k.memory() {
		retained.all[p] = struct{}{}
	}
}

// poll makes the call k as a non-blocking one.
func (c *Comm) poll(ctx context.Context, k *Call) (Status, error) {
	st, _, err := c.pollOrLeave(ctx, k)
	return st, err
}

// pollOrLeave is poll that returns the request if it was abandoned.
func (c *Comm) pollOrLeave(ctx context.Context, k *Call) (st Status, left *Request, err error) {
	r, large, err := c.start(k)
	if large {
		st, err = c.inPieces(ctx, k)
		return st, nil, err
	}
	if err != nil {
		return Status{}, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st, err, ended := r.poll(ctx)
	if !ended {
		return st, nil, err
	}
	return Status{}, r, r.abandon(ctx.Err())
}
