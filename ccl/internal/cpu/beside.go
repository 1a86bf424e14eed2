package cpu

import (
	"context"
	"errors"
	"math/bits"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// Beside is a library's engine beside the CPU engine of a Comm, under the eyes of its control
// plane: the library moves the data, and the Comm gives each call its place in the order, shows its
// record to the others, and watches over it. So what the library does not notice (another call on
// another rank, a rank that has gone, a wait without end) is noticed all the same.
type Beside struct {
	engine.Engine
	comm     *Comm
	connects bool                     // see engine.Library
	strict   bool                     // all ranks are in a call before any goes on: CheckStrict
	tell     func(error) error        // what the Comm's error says of the library's
	running  atomic.Bool              // a call of Run is inside the library
	sent     []uint8                  // what messages there have been with each rank: sentTo, gotFrom
	met      [call.Barrier + 1]uint64 // the sizes, as powers of two, with which calls of each kind have been made
}

// Beside watches over e, an engine of lib. tell is what a call's error says of one of the library's.
func (c *Comm) Beside(e engine.Engine, lib *engine.Library, tell func(error) error) *Beside {
	return &Beside{Engine: e, comm: c, connects: lib.Connects, strict: c.rank.Group.Strict(), tell: tell}
}

// Run makes calls on host memory. Its error is a *call.Fault, as that of the CPU engine is.
func (b *Beside) Run(ctx context.Context, calls []*op.Call) error {
	for _, k := range calls {
		if f := b.begin(ctx, k, b.First(k)); f != nil {
			return f
		}
	}
	defer b.until(ctx)()
	b.running.Store(true)
	err := b.Engine.Run(ctx, calls)
	b.running.Store(false)
	if err != nil {
		err = b.tell(err)
	}
	var first *call.Fault
	for _, k := range calls {
		if f := b.end(k, err); first == nil {
			first = f
		}
	}
	return failure(first)
}

// Running reports whether a call of Run is inside the library.
func (b *Beside) Running() bool { return b.running.Load() }

// Issue hands calls over, which have entered. The monitor looks at those that may wait inside for other ranks.
func (b *Beside) Issue(stream uintptr, calls []*op.Call, how engine.How) (engine.Span, error) {
	if how&engine.Connecting == 0 {
		return b.Engine.Issue(stream, calls, how)
	}
	b.comm.rank.Inside(true)
	span, err := b.Engine.Issue(stream, calls, how)
	b.comm.rank.Inside(false)
	return span, err
}

// Waits calls f, which waits inside the library for other ranks and looks neither at them nor at
// ctx. Where ctx ends, or a rank is lost, the Comm fails, and that ends the wait.
func (b *Beside) Waits(ctx context.Context, f func() error) error {
	defer b.until(ctx)()
	b.comm.rank.Inside(true)
	defer b.comm.rank.Inside(false)
	return f()
}

// until fails the Comm where ctx ends before stop is called.
func (b *Beside) until(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return false }
	}
	return context.AfterFunc(ctx, func() { plane.EndElsewhere(&b.comm.rank, ctx.Err()) })
}

// What messages there have been with a rank.
const (
	sentTo = 1 << iota
	gotFrom
)

// First reports whether k may be a call for which the library makes connections. A collective is,
// if it is the first of its kind, or of its size, by which the library chooses what it does: all
// ranks say the same, and then meet on the control plane, so that none waits inside the library for
// one that is gone. A message is, if it is the first to a rank, or from one: it waits inside for
// that rank.
func (b *Beside) First(k *call.Call) bool {
	if !b.connects {
		return false
	}
	if b.sent == nil {
		b.sent = make([]uint8, b.comm.Size())
	}
	mark := func(rank int, what uint8) bool {
		is := b.sent[rank]&what == 0
		b.sent[rank] |= what
		return is
	}
	switch k.Kind {
	case call.Send:
		return mark(int(k.Root), sentTo)
	case call.Recv:
		return mark(int(k.Root), gotFrom)
	case call.SendRecv:
		from, to := mark(int(k.Root), gotFrom), mark(k.To, sentTo)
		return from || to
	}
	met, size := &b.met[k.Kind], uint64(1)<<bits.Len64(k.Count*uint64(k.Type.Size()))
	if *met&size != 0 {
		return false
	}
	*met |= size
	return true
}

// begin gives k its place among the calls of the Comm. After a fault it must not be made. With
// meet, as in a strict Comm, all ranks have the same collective before any of them goes on.
func (b *Beside) begin(ctx context.Context, k *call.Call, meet bool) *call.Fault {
	c := b.comm
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.rank.Stop(call.CtxFault(err, c.Rank(), nil))
	}
	c.rank.Current.Begin(nil, c.rank.Clock.Now(), false)
	if k.Kind.Pairwise() {
		k.Place = 0
	} else if c.rank.Order.Enter(k); meet || b.strict {
		if f := b.meetFirst(ctx, k); f != nil {
			return f
		}
	}
	c.rank.Standing.Elsewhere.Begin(c.rank.Current.Since())
	return nil
}

// end ends the call that begin began; err is what the library said.
func (b *Beside) end(k *call.Call, err error) *call.Fault {
	c := b.comm
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
		return c.rank.Stop(plane.Unfinished(&c.rank, err, err))
	}
	return c.rank.Stop(&call.Fault{Code: call.Backend, Peer: c.Rank(), Own: true, Err: err})
}

// Enter gives k, a call for a device, its place among the calls of the Comm, which has not failed
// as far as the caller knows: its data move when the device gets there. With meet, as in a strict
// Comm, all ranks have the same collective before any of them hands it over.
func (b *Beside) Enter(k *call.Call, meet bool) *call.Fault {
	c := b.comm
	if c.goes[k.Kind].over == messages {
		return nil
	}
	if c.rank.Order.Enter(k); meet || b.strict {
		return b.meetFirst(context.Background(), k)
	}
	return nil
}

// meetFirst waits until all ranks have come to k, before any of them has the library make it.
func (b *Beside) meetFirst(ctx context.Context, k *call.Call) *call.Fault {
	c := b.comm
	if c.Size() == 1 {
		return nil
	}
	c.rank.Current.Begin(nil, c.rank.Clock.Now(), false)
	defer func() {
		c.rank.Share.Local.Waits(c.rank.Share.Me).Store(0)
		c.rank.Unpark()
		c.rank.Wake()
	}()
	return c.meet(ctx, k)
}

// meet waits until all ranks are in the same call.
func (c *Comm) meet(ctx context.Context, k *call.Call) *call.Fault {
	b := call.Call{Head: op.Head{Record: k.Record}}
	b.Kind = call.Barrier
	if c.rank.Share.N == c.Size() {
		c.rank.Current.InRounds(true)
		defer c.rank.Current.InRounds(false)
		return c.local.Barrier(ctx, &b)
	}
	return c.links.RunRemote(ctx, &b)
}
