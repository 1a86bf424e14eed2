package ccl

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
)

// The lifetime of a Comm. One rule holds for Close against everything else:
//
//  1. A blocking call, Split, Shrink, MakeSlice and a queued call that runs use the Comm's memory between enter and
//     busy.Clear (backlog.begin and end for queued calls), and only there. Close frees the memory
//     when nobody uses it. Whatever
//     comes later finds the Comm closed, returns ErrClosed and touches nothing.
//  2. Close makes the users leave. Queued calls have PeerTimeout to end. A blocking call or a Split
//     on another goroutine
//     fails at once, with ErrClosed, as the Comm does; a Shrink comes to nothing. A user that still
//     does not leave, such
//     as an OnCall that blocks, keeps the memory: Close returns, and the memory is freed when that user has left.
//  3. A failure ends what is queued: a queued call that has not begun never begins, and its Work
//     has the failure, though
//     its HostStream may be busy with something else.
//  4. Nobody uses the Comm while it waits for OnFailure. So OnFailure may Close the Comm, and Close does not wait for
//     OnFailure.
//  5. No wait for OnFailure outlives the context of the call, nor Options.Timeout.

// life is how far a Comm is in its lifetime, and what uses it.
type life struct {
	ready     atomic.Bool  // it has an engine
	busy      ordered.Flag // a call is under way, on the goroutine that uses the Comm
	runs      ordered.Flag // queued calls are, on a stream's goroutine
	closed    atomic.Bool
	parent    *uint32     // 0 in a forked child: see proc.Parent
	found     atomic.Bool // a failure is being told
	failure   atomic.Pointer[Error]
	told      atomic.Bool   // OnFailure has been called, or there is none
	done      chan struct{} // closed once OnFailure has returned
	over      chan struct{} // closed once Close has returned
	lost      *loss         // that of failure
	unwinding bool          // the Comm was made within a panic, or while its goroutine ended
	letters   letters       // its messages beside its calls, which end with it
}

// toldGrace is how long a call whose context has ended still waits for OnFailure, which it should not precede.
const toldGrace = time.Second

// awaitTold waits until OnFailure has returned, within the bounds of rule 5, where limit is
// Options.Timeout. The Comm has failed, or is about to.
func (l *life) awaitTold(ctx context.Context, limit time.Duration) {
	select {
	case <-l.done:
		return
	default:
	}
	grace := time.NewTimer(toldGrace)
	defer grace.Stop()
	ctx, end := limited(ctx, limit)
	defer end()
	select {
	case <-l.done:
	case <-ctx.Done():
		select {
		case <-l.done:
		case <-grace.C:
		}
	}
}

// closedHere is what a call gets that comes after Close.
var closedHere = &call.Fault{Code: call.Closed, Peer: -1}
