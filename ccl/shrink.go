package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/cpu"
)

// Shrink agrees on who is alive and returns a Comm of them, in their old order. It is
// the only collective allowed on a failed Comm, and all living ranks must call it: it
// waits for those that have not failed, lately though they may come, until ctx or
// Options.Timeout ends. Ranks that have closed c do not count. Where none was lost, as
// after an Abort or a canceled context, the new Comm has all ranks.
//
// All survivors get a Comm of the same ranks, or all an error. A rank that is lost
// while Shrink runs is left out; one that is lost at its very end makes the new Comm
// fail at once, on all others, and Shrink can be called on that. A rank that the others
// have given up gets ErrRankLost with its own rank as Peer, always: it is to end. A rank
// that cannot connect with the others gets ErrBackend, and they a Comm without it. The
// two sides of a partition each get a Comm of their own.
//
// c stays as it is: close it. Data of the failed call are undefined, so a program goes
// on from the last state that it knows to be the same on all survivors.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	if c.none() {
		return nil, refuseNone("Shrink")
	}
	c.calls++
	refuse := func(f *cpu.Fault) error {
		return c.named(&Error{Code: Code(f.Code), Op: "Shrink", Rank: c.Rank(), Peer: f.Peer, Missing: f.Missing, Err: f.Err})
	}
	if c.shut() {
		return nil, refuse(&cpu.Fault{Code: cpu.Closed, Peer: -1, Err: whyShut()})
	}
	if err := c.drain(ctx); err != nil {
		return nil, refuse(cpu.ContextFault(err))
	}
	if !c.enter() {
		return nil, refuse(&cpu.Fault{Code: cpu.Closed, Peer: -1})
	}
	child, f := newComm(c.opt, c.tab, c.host, func(o cpu.Options) (*cpu.Comm, *cpu.Fault) {
		eng, f := c.eng.Shrink(ctx, o)
		return calledFirst(eng, c.Name()), f
	}, func(child *cpu.Comm) (*library, *cpu.Fault) {
		if c.lib == nil || child == nil {
			return nil, nil
		}
		return openLibrary(ctx, child, &c.opt)
	})
	c.leave()
	if f != nil {
		return nil, refuse(f)
	}
	return child, nil
}
