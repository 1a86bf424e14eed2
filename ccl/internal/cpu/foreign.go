package cpu

import (
	"context"
	"errors"
	"math"
	"slices"
)

// A foreign call is one whose data another engine moves: NCCL, MPI. The Comm gives it its place
// in the order, shows its record to the others, and watches over it, so that what the library does not notice
// (another call on another rank, a rank that has gone, a wait without end) is noticed all the same.

// Begin gives k its place among the calls of c. After a fault it must not be made. With meet, as in a strict Comm, all ranks
// have the same collective before any of them goes on.
func (c *Comm) Begin(ctx context.Context, k *Call, meet bool) *Fault {
	if f := c.cause.Load(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.stop(ctxFault(err, nil))
	}
	c.began = c.site.clock()
	if k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv {
		k.place = 0
		c.foreign.Store(foreignCall | uint64(c.began))
		return nil
	}
	c.enter(k)
	if (meet || c.opt.Strict) && c.Size() > 1 { // no rank moves data before all have the same call
		if f := c.meet(ctx, k); f != nil {
			return f
		}
	}
	c.foreign.Store(foreignCall | uint64(c.began))
	return nil
}

// End ends the call that Begin began; err is what the library said.
func (c *Comm) End(k *Call, err error) *Fault {
	c.foreign.Store(0)
	if f := c.cause.Load(); f != nil && (err != nil || f.Code == Mismatch) {
		return f // err is a consequence; a call that was done before is done
	}
	if k.place != 0 {
		if f := c.otherCallAt(k.place); f != nil {
			return c.stop(f)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return c.stop(ctxFault(err, c.behind()))
	}
	return c.stop(&Fault{Code: Backend, Peer: c.rank, Own: true, Err: err})
}

// Issued gives k, a call for a device, its place among the calls of c: its data move when the device gets there.
// With meet, as in a strict Comm, all ranks have the same collective before any of them hands it over.
func (c *Comm) Issued(k *Call, meet bool) *Fault {
	if f := c.cause.Load(); f != nil {
		return f
	}
	if isPairwise(k.Kind) {
		return nil
	}
	c.enter(k)
	if (meet || c.opt.Strict) && c.Size() > 1 {
		c.began = c.site.clock()
		return c.meet(context.Background(), k)
	}
	return nil
}

// Inside notes that c's rank is in a call of another engine that may wait there for other ranks, or is no more. The monitor
// looks at it as at a call of Begin.
func (c *Member) Inside(yes bool) {
	if !yes {
		c.foreign.Store(0)
		return
	}
	c.began = c.site.clock()
	c.foreign.Store(foreignCall | uint64(c.began))
}

// Stands notes since when (see Now) a device has not moved in what was handed to it; 0: it moves. To the others this
// rank waits in its last collective then.
func (c *Member) Stands(since int64) {
	if since == 0 {
		c.stands.Store(0)
		return
	}
	c.stands.Store(foreignCall | uint64(max(since, 0)))
}

// foreignSince is foreignCall and when the call under way elsewhere began, or the device came to a stand; 0 if neither.
func (c *Member) foreignSince() uint64 {
	if began := c.foreign.Load(); began != 0 {
		return began
	}
	return c.stands.Load()
}

// Late is a timeout whose cause is err, with the ranks of this host that have not come to this rank's last collective.
func (c *Member) Late(err error) *Fault {
	return c.late(context.DeadlineExceeded, err, c.behind())
}

// RanksHere is how many ranks of the job live in this process.
func (c *Member) RanksHere() int { return int(c.site.here.Load()) }

// foreignCall marks the start of a foreign call: the monitor looks at those alone.
const foreignCall = 1 << 63

// meet waits until all ranks are in the same call.
func (c *Comm) meet(ctx context.Context, k *Call) *Fault {
	b := Call{Record: k.Record, place: k.place}
	b.Kind = Barrier
	defer func() {
		c.local.waits(c.me).Store(0)
		c.rise()
		c.wake()
	}()
	if c.n == c.Size() {
		c.lockstep = true
		defer func() { c.lockstep = false }()
		return c.localBarrier(ctx, &b)
	}
	return c.links.runRemote(ctx, &b)
}

// otherCallAt finds a rank of this host whose collective of that number was another. Who has
// not come yet is not looked at: it will look itself.
func (c *Member) otherCallAt(place uint64) *Fault {
	mine, ok := c.made(c.me, place)
	for r := range c.n {
		if r == c.me || !ok {
			continue
		}
		if theirs, ok := c.made(r, place); ok && theirs.Hash != mine.Hash {
			return c.differs(r, place)
		}
	}
	return nil
}

// Odd finds a rank that has made another call than this one, in calls that cannot look for themselves: of this host,
// or of another that has told of its calls. It may be called from any goroutine.
func (c *Member) Odd() *Fault {
	if c.topo.Nodes() > 1 && !c.opt.Unchecked {
		c.note.Lock()
		s, _, ok := c.status(c.site.clock())
		c.note.Unlock()
		if ok && s.Calls > 0 {
			if f := c.compareHeard(&s); f != nil {
				return f
			}
		}
	}
	c.life.Lock()
	defer c.life.Unlock()
	if c.gone {
		return nil
	}
	place, mine := c.collective(c.me)
	for r := range c.n {
		if w := c.local.entered(r).Load(); w>>32 == mine>>32 && w != mine {
			return c.differs(r, place)
		}
	}
	return c.otherCallAt(place)
}

// behind lists the ranks that have not come to this rank's last collective and keep the others waiting: of those that
// are behind, as far as is known, the ones that are furthest, and of those again the ones that do not wait themselves.
func (c *Member) behind() []int {
	type place struct {
		ahead int32 // of this rank
		waits bool
	}
	mine := uint32(c.local.entered(c.me).Load() >> 32)
	var late []int
	var last place
	add := func(rank int, calls uint32, waits bool) {
		p := place{int32(calls - mine), waits}
		switch {
		case p.ahead >= 0:
			return
		case late == nil || p.ahead < last.ahead || p.ahead == last.ahead && last.waits && !p.waits:
			late, last = nil, p
		case p != last:
			return
		}
		late = append(late, rank)
	}
	for r := range c.n {
		add(c.localRank(r), uint32(c.local.entered(r).Load()>>32), c.local.waits(r).Load() != 0)
	}
	for _, s := range c.site.standing(c.id) {
		if c.topo.Node(int(s.Rank)) != c.topo.Node(c.rank) {
			add(int(s.Rank), uint32(s.Calls), s.Doing == Waits)
		}
	}
	slices.Sort(late)
	return late
}

// behindHere lists those of this host.
func (c *Member) behindHere() []int {
	var late []int
	mine := uint32(c.local.entered(c.me).Load() >> 32)
	for r := range c.n {
		if int32(uint32(c.local.entered(r).Load()>>32)-mine) < 0 {
			late = append(late, c.localRank(r))
		}
	}
	return late
}

// watchForeign is the monitor's look at a foreign call, which cannot look for itself.
func (c *Member) watchForeign(now int64) {
	began := c.foreignSince()
	if began == 0 || c.cause.Load() != nil {
		return
	}
	c.life.Lock()
	if c.gone {
		c.life.Unlock()
		return
	}
	var f *Fault
	place, _ := c.collective(c.me)
	switch t := int64(c.opt.Timeout); {
	case t > 0 && now-int64(began&math.MaxInt64) > t:
		f = c.overdue(c.behind())
	default:
		if f = c.otherCallAt(place); f == nil {
			f = c.someoneLeftBehind()
		}
	}
	c.life.Unlock()
	if f != nil {
		go c.Fail(f) // whose part in the job may be the last: the job ends when the monitor has
	}
}

// someoneLeftBehind finds a rank of this host that has closed the Comm before the collective
// that this rank is in.
func (c *Member) someoneLeftBehind() *Fault {
	for _, r := range c.behindHere() {
		if c.local.state(c.topo.Local(r)).Load() == stateClosed {
			return fault(Closed, r, "")
		}
	}
	return nil
}
