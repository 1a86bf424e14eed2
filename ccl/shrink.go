package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/cpu"
)

// Shrink returns a Comm of the surviving ranks, in their old order. It is the only collective
// allowed on a failed Comm, and all living ranks must call it. It waits for living ranks that have
// not called it yet, until ctx or Options.Timeout ends. Ranks that have closed c do not count. If
// no rank was lost, as after an Abort or a canceled context, the new Comm has all ranks.
//
// All survivors get a Comm with the same ranks, or all an error. A rank that is lost while Shrink
// runs is left out. If one is lost at the very end, the new Comm fails at once on all others, and
// Shrink can be called on that. A rank that the others have given up always gets ErrRankLost with
// itself as Peer, and should end. A rank that cannot connect to the others gets ErrBackend, and
// they get a Comm without it. Each side of a partition gets a Comm of its own.
//
// c stays as it is: close it. The data of the failed call are undefined, so a program continues
// from the last state that it knows to be the same on all survivors.
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
