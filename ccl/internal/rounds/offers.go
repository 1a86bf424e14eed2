package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// offer is what a rank posts at the beginning of a call.
type offer struct {
	src, dst shm.Span
	flags    uint64 // offersInPlace and offersStaged
}

const (
	offersInPlace = 1 << iota // src and dst are the same memory
	offersStaged              // the first piece of src has been staged in the same round
)

var _ [64 - 8 - unsafe.Sizeof(offer{})]byte // it lies in the cache line of the flag

// How a call gets at the data of the other ranks.
type way uint8

const (
	byStage  way = iota // through staging memory
	byRead              // their memory is read, whatever it takes
	byDirect            // all of it, sources and results, can be touched in place
)

// offering is what the ranks of a host know of each other's memory: at first nothing, then which rank may read which,
// and in each call where it lies.
type offering struct {
	seat
	slots   *slots
	staging *staging
	posted  []offer // of the call under way, by rank
}

// acquaint finds out, once per Comm, whether the ranks can read each other's memory. Each rank
// tries to read a number from each of the others, and all must succeed, since what differs between
// ranks must not steer the message pattern.
func (c *offering) acquaint(ctx context.Context, k *call.Call) *call.Fault {
	if c.mem.Known.Asked {
		return nil
	}
	type card struct{ pid, at, number uint64 }
	rc := c.mem
	c.posted = make([]offer, c.n)
	rc.Scratch = make([]byte, 2*tuning.ReadPiece)
	rc.Pids = make([]int32, c.n)
	if rc.Known.All = !c.rank.Site.Here.Host.Shared(); rc.Known.All {
		rc.Known.Asked = true
		return nil
	}
	round, f := c.slots.open(ctx, k, false)
	if f != nil {
		return f
	}
	*(*card)(c.local.Data(c.me, round)) = card{reach.OwnPID, uint64(uintptr(unsafe.Pointer(&reach.Secret))), reach.Secret}
	c.slots.post(k, round)
	if f := c.slots.awaitAll(ctx, k, round); f != nil {
		return f
	}
	const inAll, inMoves = 1, 2 // the calls in which a rank reads
	ok := uint64(0)
	all, moves := c.rank.Standing.WouldRead()
	if all {
		ok |= inAll
	}
	if moves {
		ok |= inMoves
	}
	for r := range c.n {
		if r == c.me || ok == 0 {
			continue
		}
		his := *(*card)(c.local.Data(r, round))
		if his.number == reach.Secret {
			continue
		}
		rc.Pids[r] = int32(his.pid)
		if !reach.Readable(rc.Pids[r], his.at, his.number) {
			ok = 0
		}
	}
	if round, f = c.slots.open(ctx, k, false); f != nil {
		return f
	}
	*(*uint64)(c.local.Data(c.me, round)) = ok
	c.slots.post(k, round)
	if f := c.slots.awaitAll(ctx, k, round); f != nil {
		return f
	}
	for r := range c.n {
		ok &= *(*uint64)(c.local.Data(r, round))
	}
	rc.Known.Reads, rc.Known.Moves = ok&inAll != 0, ok&inMoves != 0
	rc.Known.Asked = true
	return nil
}

// postOffer posts this rank's offer, and returns the round.
func (c *offering) postOffer(ctx context.Context, k *call.Call, src, dst []byte) (uint32, *call.Fault) {
	round, f := c.slots.open(ctx, k, false)
	if f == nil {
		mine := c.newOffer(src, dst)
		c.mem.ToBeRead(&mine.src, src)
		c.mem.Lend(src, nil)
		*(*offer)(c.local.Data(c.me, round)) = mine
		c.slots.post(k, round)
	}
	return round, f
}

// toBeFilled says that what others offer is going to be read into b.
func (c *offering) toBeFilled(b []byte) {
	p := c.rank.Site.Here.Host.SpanOf(b)
	c.mem.ToBeFilled(&p, b)
}

func (c *offering) newOffer(src, dst []byte) offer {
	mine := offer{src: c.rank.Site.Here.Host.SpanOf(src), dst: c.rank.Site.Here.Host.SpanOf(dst)}
	if len(src) > 0 && op.Ptr(src) == op.Ptr(dst) {
		mine.flags = offersInPlace
	}
	return mine
}

// offerOf waits for rank r's offer.
func (c *offering) offerOf(ctx context.Context, k *call.Call, r int, round uint32) (o offer, f *call.Fault) {
	if f = c.slots.await(ctx, k, r, round); f == nil {
		o = *(*offer)(c.local.Data(r, round))
	}
	return o, f
}

// exchange posts this rank's offer, waits for those of all others, and says what they allow: the
// same on all. A rank whose memory others cannot reach, or will not read, stages the first `first`
// bytes of src with its offer, and so does one that had better; ahead says that all have, in the
// round that has just been. With first 0, the ranks have agreed to read.
func (c *offering) exchange(ctx context.Context, k *call.Call, src, dst []byte,
	first int) (w way, ahead bool, f *call.Fault) {
	rc := c.mem
	round, f := c.slots.open(ctx, k, first > 0)
	if f != nil {
		return 0, false, f
	}
	mine := c.newOffer(src, dst)
	inPlace := mine.flags&offersInPlace != 0
	read := first == 0 || rc.Known.Reads && c.readsAll(len(src), inPlace)
	switch {
	case rc.Known.All || mine.src.Shared() && mine.dst.Shared() && (first == 0 || !c.stagesShared(len(src), inPlace)):
	case read:
		if first > 0 || !inPlace { // AllToAll in place is staged
			c.mem.ToBeRead(&mine.src, src)
		}
		if first == 0 {
			c.mem.ToBeFilled(&mine.dst, dst)
		}
		if first > 0 && !inPlace && (c.n > 2 || len(src) > tuning.ReadAllTo) {
			from, end := c.staging.part(len(dst), c.me)
			c.mem.ToBeRead(&mine.dst, dst[from:end])
		}
	case first > 0:
		to, f := c.staging.stage(c.me, round)
		if f != nil {
			return 0, false, f
		}
		ordered.Put(to, src[:first])
		mine.flags |= offersStaged
	}
	c.mem.Lend(src, dst)
	*(*offer)(c.local.Data(c.me, round)) = mine
	c.slots.post(k, round)
	if f := c.slots.awaitAll(ctx, k, round); f != nil {
		return 0, false, f
	}
	shared, ahead := true, true
	for r := range c.n {
		o := &c.posted[r]
		*o = *(*offer)(c.local.Data(r, round))
		shared = shared && o.src.Shared() && o.dst.Shared()
		ahead = ahead && o.flags&offersStaged != 0
	}
	switch {
	case ahead: // on all ranks, or none: each has looked at all offers
		return byStage, true, nil
	case shared || rc.Known.All:
		return byDirect, false, nil
	case rc.Known.Reads:
		return byRead, false, nil
	}
	return byStage, false, nil
}

// stagesShared reports whether this rank stages n bytes of an AllReduce though the other one can
// touch its memory: in vain if the other one does not, whose call is not in place. Edges in place
// go to and fro.
func (c *offering) stagesShared(n int, inPlace bool) bool {
	to := c.local.Layout.StageSharedTo
	if inPlace {
		to *= 2
	}
	return c.n == 2 && n <= to
}

// someInPlace reports whether some rank's results are where its operands are.
func (c *offering) someInPlace() bool {
	for i := range c.posted {
		if c.posted[i].flags&offersInPlace != 0 {
			return true
		}
	}
	return false
}
