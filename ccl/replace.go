package ccl

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
)

// Replace returns a Comm of as many ranks as c has, in which spares have taken the places of the
// ranks that are lost. Every living rank of c must call it, as with [Comm.Shrink]; spares take part
// by themselves, in NewComm or Join. All other ranks keep their numbers. Fresh lists the ranks that
// need the state of the others.
//
// All ranks get such a Comm, or all an error; then Replace may be called again, and so may Shrink. If
// one rank times out in the last step, it gets the error, and the others get a Comm that has already
// failed with that error. Replace fails where fewer spares wait than ranks are lost, and never returns a Comm of
// another size. A rank that is lost meanwhile is replaced as well. If one is lost at the very end, the
// new Comm fails at once on all others, and Replace can be called on that. If no rank is lost, as
// after an Abort, nobody is Fresh.
//
// A number goes to a spare on the host that the rank of the job with that number is on, else to one
// on the host with most spares. Of a job that was partitioned at most one side goes on: the one with
// more than half of the ranks and spares, not counting those whose end is certain. The others get
// ErrRankLost, as does a rank that was given up and comes back.
//
// Options.Timeout and ctx limit the time that Replace takes. c stays as it is: close it after
// Replace. A Comm of Split or Shrink has no spares.
func (c *Comm) Replace(ctx context.Context) (*Comm, error) {
	const op = "Replace"
	if err := callable(ctx, c, named(op)); err != nil {
		return nil, err
	}
	return meetInPool(ctx, c, op)
}

// meetInPool is Replace, or Shrink of a Comm that has spares. Of such a Comm the ranks may have
// different ones: where one was lost at the very end of a replacement, some have the Comm before
// it, and others that after it. All of them meet in the pool.
func meetInPool(ctx context.Context, c *Comm, op string) (*Comm, error) {
	refuse := func(code Code, err error) error { return c.refuse(op, code, err) }
	r := reserveOf(c)
	if r == nil {
		return nil, refuse(ErrUnsupported, whyNoSpares(c))
	}
	if err := c.drain(ctx); err != nil {
		return nil, refuse(Code(call.CtxCode(err)), err)
	}
	if !c.life.enter() {
		return nil, refuse(ErrClosed, nil)
	}
	defer c.life.busy.Clear()
	within, end := limited(ctx, c.opt.Timeout)
	defer end()
	shrinks := op == "Shrink"
	next, out, f := r.form(within, false, shrinks)
	switch {
	case f != nil:
		if f.Code == call.Timeout && ctx.Err() == nil && within.Err() != nil {
			f.Err = fmt.Errorf("not done after %v", c.opt.Timeout)
		}
		return nil, replaceError(c, op, out, f)
	case next == nil: // it has a number, so it cannot be
		return nil, refuse(ErrBackend, errors.New("there is no Comm for this rank"))
	case !shrinks && !r.give(c, next): // Close has come
		next.Close()
		return nil, refuse(ErrClosed, nil)
	}
	return next, nil
}

// whyNoSpares is why c cannot replace ranks.
func whyNoSpares(c *Comm) error {
	switch {
	case c.reserve != nil:
		return errors.New("this Comm has been replaced: call Replace of the Comm that it returned")
	case c.opt.Spares > 0:
		return errors.New("only the Comm of NewComm and those of Replace have spares, not one of Split or Shrink")
	}
	return errors.New("the job has no spares: Options.Spares (GOCCL_SPARES) is 0")
}

// replaceError is f, of which the ranks are those of the job, as c's Replace or Shrink returns it.
func replaceError(c *Comm, op string, out outcome, f *call.Fault) error {
	e := &Error{Code: Code(f.Code), Op: op, Rank: c.Rank(), Peer: -1, Err: f.Err}
	if out == tooFew { // these are numbers
		e.Peer, e.Missing = f.Missing[0], f.Missing
		return c.named(e)
	}
	members := c.eng.Control().Group
	spare := -1
	for _, w := range f.Missing {
		if at := members.RankOf(w); at >= 0 {
			e.Missing = append(e.Missing, at)
		} else {
			spare = w
		}
	}
	if f.Peer >= 0 {
		if e.Peer = members.RankOf(f.Peer); e.Peer < 0 {
			spare = f.Peer
		}
	}
	if spare >= 0 {
		who := fmt.Sprintf("a spare is at fault, world rank %d", spare)
		if e.Err == nil {
			e.Err = errors.New(who)
		} else {
			e.Err = fmt.Errorf("%s: %w", who, e.Err)
		}
	}
	return c.named(e)
}

// form makes the workers' Comm, of a pool that has been shrunk before, unless it is the first. It
// goes round again for as long as ranks are lost on the way. c is nil on a rank that waits. The
// ranks of a fault are those of the job.
func (r *reserve) form(ctx context.Context, first, shrinks bool) (c *Comm, out outcome, f *call.Fault) {
	for ; ; first = false {
		if !first {
			if f := r.renew(ctx); f != nil {
				return nil, unsettled, f
			}
		}
		pool := r.current()
		if c, out, f = r.seat(ctx, pool, shrinks); out != unsettled || !goesRound(pool, f) {
			return c, out, f
		}
	}
}

// goesRound reports whether ranks are to meet in the next pool, since a rank was lost, or is there
// already. The pool has one cause for all, and so they do the same.
func goesRound(pool *Comm, f *call.Fault) bool {
	if f == closedHere {
		return false
	}
	code := f.Code
	if cause := pool.eng.Failure(); cause != nil {
		code = cause.Code
	}
	return code == call.RankLost || code == call.Closed || code == call.Aborted
}

// renew makes the next pool, from the surviving ranks of this pool.
func (r *reserve) renew(ctx context.Context) *call.Fault {
	old := r.current()
	if old.eng.Failure() == nil { // the spares wait for that
		old.Abort(errReplace)
	}
	next, err := old.Shrink(ctx)
	if err != nil {
		return faultInJob(ctx, old, err)
	}
	r.mu.Lock()
	left := r.left
	if !left {
		r.pool = next
		members := make([]int, next.Size())
		for i := range members {
			members[i] = next.eng.World(i)
		}
		r.past.add(members, cpu.Ended(next.eng))
		r.closing.Go(func() { old.Close() }) // which may take a moment: see Linger of package plane
	}
	r.mu.Unlock()
	if left {
		next.Close()
		return closedHere
	}
	return nil
}
