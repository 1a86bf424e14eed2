package plane

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Fate is whether and why this rank's Comm has failed.
type Fate struct {
	ctx       context.Context // ends when the Comm fails or closes
	cancel    context.CancelFunc
	cause     atomic.Pointer[call.Fault]
	proposal  atomic.Pointer[call.Fault] // what this rank first believed to be the cause: not nil where cause is not
	sided     atomic.Pointer[call.Fault] // see Side
	failedAt  atomic.Int64               // nanoseconds since the job began
	outlived  atomic.Pointer[outlived]   // see lastcall.go
	word      *atomic.Uint64             // by which the ranks of this host tell each other that the Comm has failed
	closed    atomic.Bool
	closing   atomic.Bool   // see Interrupt
	wordSince time.Duration // that the abort word was seen set, in lived time; the monitor's
	voted     []uint64      // collectives whose sides this host has told, under Job.mu: see settle.go
}

// Cause is why the Comm failed on all ranks, nil while that is not known here.
func (c *Fate) Cause() *call.Fault { return c.cause.Load() }

// Proposal is what this rank first believed to be the cause: a call that begins then waits for the cause.
func (c *Fate) Proposal() *call.Fault { return c.proposal.Load() }

// Context ends when the Comm fails or closes.
func (c *Fate) Context() context.Context { return c.ctx }

// Close notes that the Comm is being closed, and reports whether it was not before.
func (c *Fate) Close() bool { return c.closed.CompareAndSwap(false, true) }

// Cancel ends the Context.
func (c *Fate) Cancel() { c.cancel() }

// Failure is why the Comm failed, nil while it has not.
func (c *Fate) Failure() *call.Fault {
	if f := c.sided.Load(); f != nil {
		return f
	}
	return c.cause.Load()
}

// Side is f as it is in the collective of that place, with that hash, of which this rank knew
// nothing yet when the ranks that disagree failed the Comm: of the two, the other is the one whose
// call is not this one. What the first call has been told stands for all that follow.
func (c *Fate) Side(f *call.Fault, place uint64, hash uint32) *call.Fault {
	if told := c.sided.Load(); told != nil || f.Other == nil {
		return cmp.Or(told, f)
	}
	g := *f
	if g.Apart = f.Theirs.Place != place; !g.Apart && f.Theirs.Hash == hash {
		g.Peer, g.Theirs, g.Other = f.OtherPeer, f.Other, nil
	}
	c.sided.CompareAndSwap(nil, &g)
	return c.sided.Load()
}

// Interrupt makes a Shrink under way come to nothing, with a fault of code Closed, unless this rank
// is bound to wait for its outcome. Calls are interrupted by Fail.
func (c *Fate) Interrupt() { c.closing.Store(true) }

// Interrupted reports whether Interrupt has been called.
func (c *Fate) Interrupted() bool { return c.closing.Load() }
