package cpu

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

// A foreign call is one whose data another engine moves: NCCL, MPI. The Comm gives it its place
// in the order, shows its record to the others, and watches over it, so that what the library does not notice
// (another call on another rank, a rank that has gone, a wait without end) is noticed all the same.

// Begin gives k its place among the calls of c. After a fault it must not be made. With meet, as in a strict Comm, all ranks
// have the same collective before any of them goes on.
func (c *Comm) Begin(ctx context.Context, k *call.Call, meet bool) *call.Fault {
	if f := c.Cause.Load(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.Stop(call.CtxFault(err, nil))
	}
	c.Began = c.Site.Clock()
	if k.Kind == call.Send || k.Kind == call.Recv || k.Kind == call.SendRecv {
		k.Place = 0
		c.Foreign.Store(plane.ForeignCall | uint64(c.Began))
		return nil
	}
	c.Enter(k)
	if (meet || c.Opt.Strict) && c.Size() > 1 { // no rank moves data before all have the same call
		if f := c.meet(ctx, k); f != nil {
			return f
		}
	}
	c.Foreign.Store(plane.ForeignCall | uint64(c.Began))
	return nil
}

// End ends the call that Begin began; err is what the library said.
func (c *Comm) End(k *call.Call, err error) *call.Fault {
	c.Foreign.Store(0)
	if f := c.Cause.Load(); f != nil && (err != nil || f.Code == call.Mismatch) {
		return f // err is a consequence; a call that was done before is done
	}
	if k.Place != 0 {
		if f := c.OtherCallAt(k.Place); f != nil {
			return c.Stop(f)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return c.Stop(call.CtxFault(err, c.LateRanks()))
	}
	return c.Stop(&call.Fault{Code: call.Backend, Peer: c.Rank(), Own: true, Err: err})
}

// Issued gives k, a call for a device, its place among the calls of c: its data move when the device gets there.
// With meet, as in a strict Comm, all ranks have the same collective before any of them hands it over.
func (c *Comm) Issued(k *call.Call, meet bool) *call.Fault {
	if f := c.Cause.Load(); f != nil {
		return f
	}
	if call.IsPairwise(k.Kind) {
		return nil
	}
	c.Enter(k)
	if (meet || c.Opt.Strict) && c.Size() > 1 {
		c.Began = c.Site.Clock()
		return c.meet(context.Background(), k)
	}
	return nil
}

// meet waits until all ranks are in the same call.
func (c *Comm) meet(ctx context.Context, k *call.Call) *call.Fault {
	b := call.Call{Head: op.Head{Record: k.Record}, Place: k.Place}
	b.Kind = call.Barrier
	defer func() {
		c.Local.Waits(c.Me).Store(0)
		c.Unpark()
		c.Wake()
	}()
	if c.N == c.Size() {
		c.Lockstep = true
		defer func() { c.Lockstep = false }()
		return c.LocalBarrier(ctx, &b)
	}
	return c.links.RunRemote(ctx, &b)
}
