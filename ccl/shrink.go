package ccl

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/engine"
)

// Shrink returns a Comm of the surviving ranks, in their old order. It is the only collective
// allowed on a failed Comm, and all living ranks must call it. It waits for living ranks that have
// not called it yet, until ctx or Options.Timeout ends. Ranks that have closed c do not count. If
// no rank was lost, as after an Abort or a canceled context, the new Comm has all ranks.
//
// All survivors get a Comm with the same ranks, or all an error. A rank that is lost while Shrink
// runs is left out. If one is lost at the very end, the new Comm fails at once on all others, and
// Shrink can be called on that. A rank that the others have given up always gets ErrRankLost with
// itself as Peer, and should end. So does one whose process stood still for so long that they may
// have, and that finds most of them gone. A rank that cannot connect to the others gets ErrBackend,
// and they get a Comm without it. Each side of a partition gets a Comm of its own.
//
// In a job with Options.Spares those that wait are no members. See [Comm.Replace].
//
// c stays as it is: close it. Until then NCCL and RCCL keep what its communicator holds, of which the new
// one may be made. The data of the failed call are undefined, so a program continues
// from the last state that it knows to be the same on all survivors.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	const op = "Shrink"
	if err := callable(ctx, c, named(op)); err != nil {
		return nil, err
	}
	if reserveOf(c) != nil {
		return meetInPool(ctx, c, op)
	}
	if err := c.drain(ctx); err != nil {
		return nil, c.refused(op, call.CtxFault(err, c.rank, nil))
	}
	if !c.life.enter() {
		return nil, c.refused(op, closedHere)
	}
	child, f := shrinkEntered(ctx, c)
	if f != nil {
		return nil, c.refused(op, f)
	}
	return child, nil
}

// shrinkEntered is Shrink once c is in use by it.
func shrinkEntered(ctx context.Context, c *Comm) (*Comm, *call.Fault) {
	defer c.life.busy.Clear() // also if the goroutine is ended in here, as by ccltest.Kill
	unshrunk := c.lib.unshrunk
	child, f := shrinkOnce(ctx, c)
	if f != nil && c.lib.unshrunk != unshrunk {
		// the library has failed to shrink its own, on some rank: all make a new one
		child, f = shrinkOnce(ctx, c)
	}
	return child, f
}

// shrinkOnce makes a Comm of the survivors of c.
func shrinkOnce(ctx context.Context, c *Comm) (*Comm, *call.Fault) {
	opt, ordered := c.opt, c.opt.Order == OrderLinks && c.opt.pool == nil // of a pool the calls are small
	if opt.links = new(knownLinks); ordered {
		opt.links = c.opt.links.clone()
	}
	return newComm(opt, c.tab, c.host, c.Name(), func(o plane.Options) (*cpu.Comm, *call.Fault) {
		return cpu.Shrink(ctx, c.eng, o)
	}, func(child *cpu.Comm) (*library, *call.Fault) {
		lib, f := shrinkLibrary(ctx, c, child)
		if f == nil && ordered { // all ranks have the Comm, though it may fail here
			_ = opt.links.agree(ctx, child)
		}
		return lib, f
	})
}

// shrinkLibrary gives child, whose control plane stands, the library of c. Where ranks are lost and
// the library can shrink its communicator on every rank that is left, it does, which connects less
// anew; otherwise the child gets a new one.
func shrinkLibrary(ctx context.Context, c *Comm, child *cpu.Comm) (*library, *call.Fault) {
	var lost []int
	for r := range c.Size() {
		if cpu.RankOf(child, c.eng.World(r)) < 0 {
			lost = append(lost, r)
		}
	}
	anew := c.opt // with the same device, on which the program has its memory, whatever place on the host the rank has now
	anew.Backend = c.lib.backend.Name
	if c.lib.device >= 0 {
		anew.Device = &c.lib.device
	}
	if len(lost) == 0 { // the same on all ranks
		return openLibrary(ctx, child, &anew.Options)
	}
	can, before := []int64{0}, c.lib.unshrunk
	if !before {
		err := c.lib.end.Shrinks(ctx)
		if errors.Is(err, engine.ErrUnsupported) { // the same on all ranks, none of which has tried it before
			return openLibrary(ctx, child, &anew.Options)
		}
		can[0] = bit[int64](err == nil)
	}
	t := vote{ctx, child}
	c.lib.unshrunk = true // before the first word: another rank's failure may be heard in any of what follows
	if err := t.min(can); err != nil {
		return nil, faultOf(err)
	}
	if can[0] == 0 {
		made, f := openLibrary(ctx, child, &anew.Options)
		c.lib.unshrunk = before || f != nil
		return made, f
	}
	l := &library{backend: c.lib.backend, loaded: c.lib.loaded, device: c.lib.device}
	made, f := l.connect(t, &c.opt.Options, func(g engine.Group) (engine.Engine, error) {
		return c.lib.end.Shrink(ctx, g, lost)
	})
	c.lib.unshrunk = f != nil
	return made, f
}
