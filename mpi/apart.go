package mpi

import (
	"context"
	"runtime"
	"unsafe"
)

// MPI does not match its blocking collectives with its non-blocking ones: of two ranks that make
// the same call in the two forms neither returns. Whether a context can end is one rank's own
// affair, so it must not choose the form. Every collective that waits is a blocking one, on all
// ranks. A rank whose context can end leaves it to a goroutine of its own, and waits for that one
// and for the context. Messages match in any form, and a Recv that is polled can be cancelled.

// message reports whether k is a call between two ranks.
func (k Kind) message() bool { return k >= KindSend && k <= KindSendRecv }

// apart is a collective on a goroutine of its own.
type apart struct {
	call  Call
	hold  [2]unsafe.Pointer // the call's memory, also where only its address was given
	done  chan struct{}     // closed once what follows is set
	st    Status
	large bool
	err   error
}

func (a *apart) run(c *Comm) {
	a.st, a.large, a.err = c.run(&a.call)
	runtime.KeepAlive(a)
	close(a.done)
}

// over reports whether a has returned from MPI.
func (a *apart) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// apart makes the collective k until it is done or ctx has ended.
func (c *Comm) apart(ctx context.Context, k *Call) (Status, error) {
	a := &apart{call: *k, hold: k.memory(), done: make(chan struct{})}
	if c.size == 1 { // nobody to wait for
		a.run(c)
	} else {
		go a.run(c)
		select {
		case <-a.done:
		case <-ctx.Done():
		}
	}
	switch {
	case !a.over():
		return Status{}, c.giveUp(a, ctx.Err())
	case a.large:
		return c.inPieces(ctx, k)
	}
	return a.st, a.err
}

// giveUp leaves a inside MPI because of err.
func (c *Comm) giveUp(a *apart, err error) error {
	live.Lock()
	live.apart = append(live.apart, a)
	live.Unlock()
	return c.lose(a.call.Kind, err)
}

// inside counts the collectives that were given up and are still inside MPI.
func inside() int {
	live.Lock()
	defer live.Unlock()
	left := live.apart[:0]
	for _, a := range live.apart {
		if !a.over() {
			left = append(left, a)
		}
	}
	clear(live.apart[len(left):])
	live.apart = left
	return len(left)
}
