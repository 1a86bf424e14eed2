package ccl

import "context"

// Work is the handle of one issued call, a value without an allocation. The zero
// Work is complete.
//
// A Queue that rejects a call, because of a wrong argument, say, still counts it as one of the
// Comm's calls. The other ranks get ErrMismatch, which names this rank, and every later Wait
// here returns the rejection. So a program that waits for the last of several calls misses
// nothing. A blocking call that is rejected counts as never made: the Comm is good, and the
// program may make it again, with the right arguments.
type Work struct { // of four words, which a call returns in registers
	at  place
	seq uint64 // its number there
	err *Error
}

// place is where work was issued: a deviceStream, whose numbers are those of its Comm's calls; a Comm, for its
// queued calls; a HostStream, for what Do runs.
type place interface {
	wait(ctx context.Context, seq uint64) error
	test(seq uint64) (done bool, err error)
	onDone(seq uint64, f func(error))
}

// Wait returns when the call is complete. On a device that is when the stream has passed it; there
// Wait may also wait for calls that were issued after it, before Wait. If ctx ends first the error
// is ErrCanceled or ErrTimeout and the call goes on, with its slices: only Options.Timeout and
// Abort end it. In that Wait differs from a blocking call, which fails the Comm when its context
// ends.
func (w Work) Wait(ctx context.Context) error {
	if err := noContext(ctx, nil, "Wait"); err != nil {
		return err
	}
	switch {
	case w.err != nil:
		return give(w.err)
	case w.at != nil:
		return give(w.at.wait(ctx, w.seq))
	}
	return nil
}

// Test reports whether the call is complete, without blocking.
func (w Work) Test() (done bool, err error) {
	switch {
	case w.err != nil:
		return true, give(w.err)
	case w.at != nil:
		done, err := w.at.test(w.seq)
		return done, give(err)
	}
	return true, nil
}
