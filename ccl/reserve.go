package ccl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
)

// String reads like: spare 1 of 2, waits
func (r *reserve) String() string {
	return fmt.Sprintf("spare %d of %d, waits", r.world-r.workers+1, r.opt.Spares)
}

// current is the pool.
func (r *reserve) current() *Comm {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pool
}

// give makes the reserve that of Comm to. It is false where this rank has left meanwhile.
func (r *reserve) give(from, to *Comm) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left || r.of != from {
		return false
	}
	r.of = to
	return true
}

// isLeft reports whether this rank waits and f says that the ranks that worked have gone on without
// it, and have closed their Comms: a job that ends as its processes come back from a pause looks
// so, too.
func (r *reserve) isLeft(f *call.Fault) bool {
	cause := r.current().eng.Failure()
	return r.world >= r.workers && f != nil && errors.Is(f.Err, cpu.ErrLeftBehind) && cause != nil &&
		cause.Code != call.RankLost
}

// waiting is how many spares wait, as far as this rank knows.
func (r *reserve) waiting() int {
	r.mu.Lock()
	pool, waiting := r.pool, r.seats.waiting
	r.mu.Unlock()
	n, member := 0, pool.eng.Control()
	for _, w := range waiting {
		if at := member.Group.RankOf(w); at >= 0 && !member.Site.Job.IsLost(w) && !member.Share.HasLeft(at) {
			n++
		}
	}
	return n
}

// reserveOf is c's part in a job with spares, nil where it has none, or none any more.
func reserveOf(c *Comm) *reserve {
	if c.isNil() || c.reserve == nil {
		return nil
	}
	r := c.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of != c || r.left {
		return nil
	}
	return r
}

// Waiting returns the number of spares that wait, as far as this rank knows. Ranks may hear of the
// loss of a spare at different times.
func (c *Comm) Waiting() int {
	r := reserveOf(c)
	if r == nil {
		return 0
	}
	return r.waiting()
}

// Fresh lists the ranks of c that came as spares or in a Grow and have not the state of the others yet, in
// ascending order: those that came with c, and those that came before it and have not called
// Restored. All ranks of c get the same list. It is nil where nobody came.
func (c *Comm) Fresh() []int {
	r := reserveOf(c)
	if r == nil && c.isNil() {
		return nil
	}
	if r == nil {
		return slices.Clone(c.opt.came.of(c).fresh)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seats.fresh)
}

// Restored says that this rank has the state of the others, so that it is not Fresh in the Comms
// that Replace makes from now on. It sends nothing. A rank that has taken a spare's place calls it
// when its state is whole, before its first step; for other ranks it does nothing.
func (c *Comm) Restored() {
	if r := reserveOf(c); r != nil {
		r.mu.Lock()
		r.fresh = false
		r.mu.Unlock()
		return
	}
	if !c.isNil() {
		c.opt.came.of(c).restored.Store(true)
	}
}

// of are those of c, none if it is not of Grow.
func (a *arrivals) of(c *Comm) *arrivals {
	if a != nil && a.comm == c {
		return a
	}
	return new(arrivals)
}
