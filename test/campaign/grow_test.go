package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
)

// isCalm reports whether the fault befalls neither this rank's job nor anybody with whom that has had to do.
func (r *boxed) isCalm() bool {
	b := r.b
	if r.grows && b.isLater() && b.seed%2 == 1 { // see growOnce
		return false
	}
	return b.fault.mild() || !r.grows && !slices.ContainsFunc(b.host[:b.ranks+b.spares+b.birth.torn], b.fault.struck)
}

// isLater reports whether the job is one of those that were added later, so that the others stay what they are: these
// reorder their hosts now and then, and grow by GrowAll, or with a context that ends.
func (b *box) isLater() bool { return b.seed > 1000 }

// growOnce is Grow to size ranks. In jobs that were added later it may be GrowAll, and the context of one rank may end
// anywhere in the first try.
func (r *boxed) growOnce(ctx context.Context, size, try int) (*ccl.Comm, error) {
	b := r.b
	if !b.isLater() {
		return ccl.Grow(ctx, r.world, size)
	}
	if who := int(b.seed/2) % len(r.seats); b.seed%2 == 1 && try == 0 && r.seats[who] == r.seat {
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		ends := &endsAfter{Context: short, cancel: cancel}
		ends.asks.Store(int64(b.seed/2) % 97)
		ctx = ends
	}
	if b.seed%3 == 0 {
		return ccl.GrowAll(ctx, r.world, size)
	}
	return ccl.Grow(ctx, r.world, size)
}

// endsAfter is a context that is canceled once it has been asked for its error so often.
type endsAfter struct {
	context.Context
	cancel context.CancelFunc
	asks   atomic.Int64
}

func (c *endsAfter) Err() error {
	if c.asks.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// growing has the job grow, at step i. It returns false where that is an error, as of any step.
func (r *boxed) growing(ctx context.Context, i int) error {
	b := r.b
	r.grows = true
	size, before := r.world.Size()+b.birth.grow, slices.Clone(r.seats)
	for try := range growTries {
		began := time.Now()
		next, err := r.growOnce(ctx, size, try)
		r.host.Live()
		if r.host.Ended() {
			if next != nil && next != r.world {
				next.Close()
			}
			return context.Canceled
		}
		took := time.Since(began)
		if took > growBound && b.fault.kind != "pauseall" && !b.fault.struck(b.host[r.seat]) {
			r.f.add("BOUND: seat %d: Grow took %v: %v", r.seat, took, err)
		}
		what := "the new Comm"
		var e *ccl.Error
		switch {
		case errors.As(err, &e) && e.Code == ccl.ErrUnsupported: // a Comm of Shrink
			return nil
		case err != nil:
			what = "an error"
		case next == r.world:
			what = "the old Comm"
		}
		r.note("Grow to %d, try %d: %s, %v", size, try, what, err)
		r.all.grew(fmt.Sprintf("%v, step %d, try %d: %s", before, i, try, what), r.seat)
		switch {
		case err != nil && r.world.Err() == nil && e != nil && e.Code == ccl.ErrBackend: // the store's, and the job goes on
			if !b.ofStore() && !b.fault.struck(b.host[r.seats[0]]) {
				r.f.add("GROW: seat %d: %v", r.seat, err)
			}
			return nil
		case err != nil:
			struck := slices.ContainsFunc(r.seats, func(seat int) bool { return b.fault.struck(b.host[seat]) })
			if b.ofStore() && !struck && errors.Is(r.world.Err(), ccl.ErrTimeout) {
				r.f.add("STORE: seat %d: a store that is silent ends the job: %v", r.seat, err)
			}
			return err
		case next == r.world:
			time.Sleep(200 * time.Millisecond)
			continue
		}
		r.world.Close()
		r.world, r.moved = next, true
		if _, err := r.meet(ctx, i+1); err != nil {
			return err
		}
		// A newcomer, as a spare, has the number of one that was lost meanwhile.
		for at, seat := range before {
			if at < len(r.seats) && b.spares > 0 && b.fault.struck(b.host[seat]) {
				before[at] = r.seats[at]
			}
		}
		if r.b.isLater() && len(before) < len(r.seats) && len(r.seats) < size && slices.Equal(r.seats[:len(before)], before) {
			return nil // GrowAll has taken in those that waited
		}
		if len(r.seats) != size || !slices.Equal(r.seats[:len(before)], before) {
			r.f.add("SEATS: Grow of %v to %d gave %v", before, size, r.seats)
		}
		return nil
	}
	if b.fault.kind == "none" {
		r.f.add("NOT GROWN: seat %d: nobody came in %d tries", r.seat, growTries)
	}
	return nil
}
