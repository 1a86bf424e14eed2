package ccl

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// errorOf is f as an Error of this rank, outside any call.
func errorOf(c *Comm, f *call.Fault) *Error {
	e := &Error{Code: Code(f.Code), Op: "Comm", Rank: c.rank, Peer: f.Peer, Missing: f.Missing, Certain: f.Certain,
		Err: f.Err, loss: c.life.lost}
	if f.Theirs != nil {
		e.Theirs = callOf(f.Theirs)
		if f.Mine != nil {
			e.Mine = callOf(f.Mine)
		}
	}
	return c.named(e)
}

// callOf is the call that r describes, by whichever part of the engine: each keeps the number by
// which the rank that made the call counts it.
func callOf(r *call.Record) *Call {
	return &Call{Seq: r.Seq, Count: r.Count, Kind: Kind(r.Kind), Type: Type(r.Type), Op: Op(r.Op),
		State: State(r.State), Root: max(r.Root, noRoot), Number: max(noRoot-r.Root, 0), Factor: float64(r.Times),
		Start: time.Duration(r.Start), End: time.Duration(r.End)}
}

// errorIn is why the call in r failed: c's failure, once OnFailure has returned, or that c is closed. f is what the
// engine said, nil if nothing. Whoever calls it does not use c.
func (c *Comm) errorIn(ctx context.Context, f *call.Fault, r *call.Record) *Error {
	if f == closedHere && c.life.failure.Load() == nil {
		return c.refuse(Kind(r.Kind).String(), ErrClosed, nil)
	}
	c.life.awaitTold(ctx, c.opt.Timeout)
	return failureIn(c, f, r)
}

// failureIn is c's failure as the call in r returns it.
func failureIn(c *Comm, f *call.Fault, r *call.Record) *Error {
	failure := c.life.failure.Load()
	if failure == nil { // the goroutine that found it has not come to telling
		failure = errorOf(c, cmp.Or(f, c.eng.Failure()))
	}
	in := *failure
	c.named(&in) // SetName may have come since
	in.Op = Kind(r.Kind).String()
	in.Mine = callOf(r)
	in.Mine.Caller = c.rec.callers.of(r.Seq)
	if f := c.eng.Failure(); f != nil && f.Code == call.Mismatch {
		if f.Mine != nil { // often an earlier call, which this one has found to differ
			in.Mine = callOf(f.Mine)
			in.Mine.Caller = c.rec.callers.of(in.Mine.Seq)
			in.earlier = in.Mine.Seq != r.Seq
		}
		if f.Theirs != nil {
			in.Peer, in.Theirs = f.Peer, callOf(f.Theirs)
		}
		if in.others = f.Apart; in.others {
			in.Err = fmt.Errorf("call #%d is %s there, and %s at %s", f.Theirs.Seq, in.Theirs.describe(),
				callOf(f.Other).describe(), in.rank(f.OtherPeer))
		}
	}
	return &in
}

// errorHere is why the blocking call of c in r failed that the calling goroutine is in, with the
// place of the call. Where ranks have made different calls, they tell each other the places.
func errorHere(ctx context.Context, c *Comm, f *call.Fault, r *call.Record) *Error {
	e := c.errorIn(ctx, f, r)
	if e.Mine == nil || e.earlier {
		return e
	}
	if e.Mine.Caller == "" {
		e.Mine.Caller = c.rec.callers.here()
	}
	if e.differs() && e.Peer >= 0 {
		e.Theirs.Caller = plane.SwapPlaces(c.eng.Control(), *r, e.Mine.Caller, e.Peer, func(r *call.Record) bool {
			their := callOf(r)
			return their.Seq == e.Theirs.Seq && their.Kind == e.Theirs.Kind
		})
	}
	return e
}
