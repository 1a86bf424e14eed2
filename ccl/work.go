package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/cpu"
)

// Work is the handle of one issued call, a value without an allocation. The zero
// Work is complete.
//
// A call rejected by a Queue (a wrong argument, say) still takes its place in the
// order and is published as rejected: peers get ErrMismatch naming this rank, and
// every later Wait here returns the rejection. So waiting for the last of several
// calls misses nothing. A rejected blocking call takes no place.
type Work struct {
	c   *Comm
	s   *HostStream // of Do
	dev *deviceStream
	seq uint64 // in the order of c's queued calls, or of s; on a device the call's number
	err *Error
}

// Wait returns when the call is complete; on a device, when the stream has passed it, at the latest what was
// issued before Wait. If ctx ends first the error is ErrCanceled
// or ErrTimeout, and the call goes on: only Options.Timeout and Abort stop it.
func (w Work) Wait(ctx context.Context) error {
	switch {
	case w.err != nil:
		return w.err
	case w.c != nil && cpu.Forked():
		return w.c.Err()
	case w.s != nil:
		return w.s.wait(ctx, w.seq)
	case w.dev != nil:
		return w.dev.wait(ctx, w.seq)
	case w.c != nil:
		return w.c.waitQueued(ctx, w.seq)
	}
	return nil
}

// Test reports whether the call is complete, without blocking.
func (w Work) Test() (done bool, err error) {
	switch {
	case w.err != nil:
		return true, w.err
	case w.c != nil && cpu.Forked():
		return true, w.c.Err()
	case w.s != nil:
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		if w.s.ran < w.seq {
			return false, nil
		}
		return true, w.s.result(w.seq)
	case w.dev != nil:
		return w.dev.test(w.seq)
	case w.c != nil:
		w.c.mu.Lock()
		defer w.c.mu.Unlock()
		return w.c.resultOf(w.seq)
	}
	return true, nil
}
