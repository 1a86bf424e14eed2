package cpu

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// A foreign call is one whose data another engine moves: NCCL, MPI. The Comm gives it its place
// in the order, shows its record to the others, and watches over it, so that what the library does not notice
// (another call on another rank, a rank that has gone, a wait without end) is noticed all the same.

// Begin gives k its place among the calls of c. After a fault it must not be made. With meet, as in a strict Comm, all ranks
// have the same collective before any of them goes on.
func (c *Comm) Begin(ctx context.Context, k *call.Call, meet bool) *call.Fault {
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.rank.Stop(call.CtxFault(err, nil))
	}
	c.rank.Current.Begin(nil, c.rank.Clock.Clock())
	if k.Kind == call.Send || k.Kind == call.Recv || k.Kind == call.SendRecv {
		k.Place = 0
		c.rank.Standing.Elsewhere.Begin(c.rank.Current.Since())
		return nil
	}
	c.rank.Order.Enter(k)
	if (meet || c.rank.Group.Strict()) && c.Size() > 1 { // no rank moves data before all have the same call
		if f := c.meet(ctx, k); f != nil {
			return f
		}
	}
	c.rank.Standing.Elsewhere.Begin(c.rank.Current.Since())
	return nil
}

// End ends the call that Begin began; err is what the library said.
func (c *Comm) End(k *call.Call, err error) *call.Fault {
	c.rank.Standing.Elsewhere.End()
	if f := c.rank.Fate.Cause(); f != nil && (err != nil || f.Code == call.Mismatch) {
		return f // err is a consequence; a call that was done before is done
	}
	if k.Place != 0 {
		if f := c.rank.Share.OtherCallAt(k.Place); f != nil {
			return c.rank.Stop(f)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return c.rank.Stop(call.CtxFault(err, c.rank.Standing.LateRanks()))
	}
	return c.rank.Stop(&call.Fault{Code: call.Backend, Peer: c.Rank(), Own: true, Err: err})
}

// Issued gives k, a call for a device, its place among the calls of c: its data move when the device gets there.
// With meet, as in a strict Comm, all ranks have the same collective before any of them hands it over.
func (c *Comm) Issued(k *call.Call, meet bool) *call.Fault {
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if k.Kind.Pairwise() {
		return nil
	}
	c.rank.Order.Enter(k)
	if (meet || c.rank.Group.Strict()) && c.Size() > 1 {
		c.rank.Current.Begin(nil, c.rank.Clock.Clock())
		return c.meet(context.Background(), k)
	}
	return nil
}

// meet waits until all ranks are in the same call.
func (c *Comm) meet(ctx context.Context, k *call.Call) *call.Fault {
	b := call.Call{Head: op.Head{Record: k.Record}}
	b.Kind = call.Barrier
	defer func() {
		c.rank.Share.Local.Waits(c.rank.Share.Me).Store(0)
		c.rank.Unpark()
		c.rank.Wake()
	}()
	if c.rank.Share.N == c.Size() {
		c.rank.Current.InRounds(true)
		defer c.rank.Current.InRounds(false)
		return c.local.Barrier(ctx, &b)
	}
	return c.links.RunRemote(ctx, &b)
}
