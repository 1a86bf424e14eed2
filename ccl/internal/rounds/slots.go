package rounds

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// slots are the rounds of one rank: it opens a round, posts its flag, and awaits the flags of
// others. Package region has the layout.
type slots struct {
	seat
	own  region.Flags // this rank's own
	seen uint32       // a round that all ranks are known to have posted
	all  uint32       // the round, in a wait for all others to have posted one
	swap int          // from so many bytes on two ranks swap the lines of their slots: see at
	ring ring
}

// ring is where a rank, one of more than two, puts the data that do not fit beside its flags: into
// one segment after the other. So it runs as far ahead of the others as its flags allow, whatever
// the data's size, until the ring is full.
type ring struct {
	segment, used int                        // where the next data go
	last          [tuning.MaxSegments]uint32 // the last round with data in each segment
}

// begin says how many rounds there seem to have been: see plane.Order.BeginAt.
func (c *slots) begin(start uint32) {
	c.seen, c.swap = start, math.MaxInt
	if from := c.local.Layout.SwapFrom; c.n == 2 && from > 0 {
		c.swap = from
	}
	for i := range c.ring.last {
		c.ring.last[i] = start - c.local.Depth // long ago
	}
}

// open begins a round: it waits until the slot of that round has been read by all.
func (c *slots) open(ctx context.Context, k *call.Call, staged bool) (uint32, *call.Fault) {
	c.rank.Order.Round++
	if !staged && c.seen-c.rank.Order.Round+c.local.Depth-2 < 1<<31 {
		return c.rank.Order.Round, nil
	}
	return c.openLate(ctx, k, staged)
}

// openLate is open where the slot is in staging memory, or it is not known that it has been read.
func (c *slots) openLate(ctx context.Context, k *call.Call, staged bool) (uint32, *call.Fault) {
	need := c.rank.Order.Round - (tuning.StageDepth - 2)
	if !staged { // some more, so that the next rounds need not look: each look is a line that others write
		need = c.rank.Order.Round - (c.local.Depth - 2) + c.local.Depth/4
	}
	if int32(c.seen-need) >= 0 {
		return c.rank.Order.Round, nil
	}
	return c.rank.Order.Round, c.catchUp(ctx, k, need)
}

// at is where rank r's n bytes of round lie, in a round in which all ranks have as many: two ranks
// swap the lines behind the flags', as they do those of staging memory.
func (c *slots) at(r int, round uint32, n int) unsafe.Pointer {
	if n >= c.swap {
		r = c.local.Turn(r, round/c.local.Depth)
	}
	return c.local.Payload(r, round, n)
}

// place finds room for this rank's n bytes of round, which it has opened.
func (c *slots) place(ctx context.Context, k *call.Call, round uint32, n int) *call.Fault {
	if n <= tuning.BesideFlag || c.n == 2 {
		return nil
	}
	return c.placeInRing(ctx, k, round, n)
}

// placeInRing is place where the data lie in the ring, in one segment or at the beginning of some.
// A segment is used again when all have read what it has: when they have posted the second round
// after its last one.
func (c *slots) placeInRing(ctx context.Context, k *call.Call, round uint32, n int) *call.Fault {
	g, room := &c.ring, tuning.SlotRoom(c.n)
	if g.used+n > room {
		segments, takes := tuning.RingSegments(c.n), (n+room-1)/room
		next := (g.segment + 1) % segments
		keepUp := int32(c.seen-round) >= -2 // the others: so the first segments do, which stay in the caches
		if keepUp && c.isRead(g.last[:takes]) {
			next = 0
		}
		next = g.run(next, takes, segments, round)
		// If it must wait, then for some more, as in openLate: the two segments after those as well. What is older than the
		// slots has been read.
		back := c.local.Depth
		for i := range takes + 2 {
			back = min(back, round-g.last[(next+i)%segments])
		}
		if back < c.local.Depth && !c.isRead(g.last[next:next+takes]) {
			need := round - 1
			if back > 3 {
				need = round - back + 2
			}
			if int32(c.seen-need) < 0 {
				if f := c.catchUp(ctx, k, need); f != nil {
					return f
				}
			}
		}
		for i := range takes {
			g.last[next+i] = round
		}
		g.segment, g.used = next+takes-1, -(takes-1)*room
	}
	g.last[g.segment] = round
	c.local.Place(c.me, round, g.segment*room+g.used)
	g.used += (n + 63) &^ 63
	return nil
}

// run is the first run of so many segments, from next on, without data of the last two rounds:
// those could not be waited for, since the others post this round only later.
func (g *ring) run(next, takes, segments int, round uint32) int {
	for i := 0; i < takes; i++ {
		if next+takes > segments {
			next, i = 0, 0
		}
		if round-g.last[next+i] < 3 {
			next, i = next+i+1, -1
		}
	}
	return next
}

// isRead reports whether this rank knows that all have read the data of those rounds.
func (c *slots) isRead(rounds []uint32) bool {
	for _, r := range rounds {
		if int32(c.seen-r) < 2 {
			return false
		}
	}
	return true
}

// catchUp waits until all ranks of this host have posted round need.
func (c *slots) catchUp(ctx context.Context, k *call.Call, need uint32) *call.Fault {
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		p := c.local.Flag(r, need)
		w := plane.Waiter{Round: c.ofAll(need)}
		for looks := 0; int32(uint32(atomic.LoadUint64(p)>>32)-need) < 0; looks++ {
			if looks < c.rank.Share.Spins {
				continue
			}
			looks = 0
			if f := c.rank.Pause(ctx, &w, c.rank.Share.Ranks[r]); f != nil {
				return f
			}
		}
	}
	c.seen = need
	return nil
}

// post says that this rank's data of round is there.
func (c *slots) post(k *call.Call, round uint32) {
	if inject.On {
		inject.At("cpu.post")
	}
	ordered.Post(c.own.At(round), uint64(round)<<32|uint64(k.Hash), c.own.At(round+1))
}

// postInline is post of a round of which n bytes lie in this rank's slot. It asks for the lines
// that as many of the next round will take, where that helps: with two ranks, the other one has
// copies of them.
func (c *slots) postInline(k *call.Call, round uint32, n int) {
	c.post(k, round)
	if c.local.Layout.ClaimAhead && c.n == 2 && n > tuning.BesideFlag && n <= c.local.Inline {
		ordered.Claim(c.local.Payload(c.me, round+1, n), n)
	}
}

// ofAll is Waiter.Round of a wait for all others to have posted round. Two ranks ring each other.
func (c *slots) ofAll(round uint32) uint32 {
	if c.n == 2 {
		return 0
	}
	return round
}

// await returns when rank r of this host has posted round, in the call that k is.
func (c *slots) await(ctx context.Context, k *call.Call, r int, round uint32) *call.Fault {
	p, want := c.local.Flag(r, round), uint64(round)<<32|uint64(k.Hash)
	if atomic.LoadUint64(p) == want || inject.Wrong("rounds.await") {
		return nil
	}
	w := plane.Waiter{Round: c.all}
	for {
		for range c.rank.Share.Spins {
			if atomic.LoadUint64(p) == want {
				return nil
			}
		}
		v := atomic.LoadUint64(p)
		if v == want {
			return nil
		}
		if uint32(v>>32) == round || int32(uint32(v>>32)-round) > 0 {
			return c.rank.Stop(c.rank.Share.Differs(r, k.Place))
		}
		if f := c.rank.Pause(ctx, &w, c.rank.Share.Ranks[r]); f != nil {
			return f
		}
	}
}

// awaitAll waits for every other rank's post of round.
func (c *slots) awaitAll(ctx context.Context, k *call.Call, round uint32) *call.Fault {
	c.all = c.ofAll(round)
	for r := c.me + 1; r < c.n; r++ {
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
	}
	for r := range c.me {
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
	}
	c.all, c.seen = 0, round
	return nil
}

// barrier is a round without data. After it, all have done what they did before it.
func (c *slots) barrier(ctx context.Context, k *call.Call) *call.Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	return c.awaitAll(ctx, k, round)
}

// release ends a call in which others read from this rank's memory, if they do: it waits until they have.
func (c *slots) release(ctx context.Context, k *call.Call, wasRead bool) *call.Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	if wasRead {
		return c.awaitAll(ctx, k, round)
	}
	return nil
}

// releaseBy ends a call in which only root reads: the others wait for it.
func (c *slots) releaseBy(ctx context.Context, k *call.Call, root int) *call.Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	c.post(k, round)
	if c.me != root {
		return c.await(ctx, k, root, round)
	}
	return nil
}
