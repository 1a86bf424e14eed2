package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// AllToAllV on one host. Only the two ends of a message know its length, so each rank begins with a header
// in its slot: where its blocks begin and the last ends, as if they lay one behind another, and then the
// length of its largest block, or 0 if all of them lie right behind the header. Else the first piece of each lies
// in staging memory already, and the largest of all ranks' says how many rounds of pieces follow, as in AllToAll; or
// what lies behind the header says where the others find the blocks, and all wait until all have fetched them.

// Two ranks have one block each for the other, so one word says it all, and leaves more of the flag's cache line to
// the block: four times its length, and where it is.

// Where a rank's blocks are.
const (
	vBehind  = iota // the header
	vStaged         // the first pieces
	vOffered        // where they were: a span is behind the header
)

// offeredV, in place of the length of the largest block in a header of more than two ranks, says
// that the blocks are offered.
const offeredV = 1 << 63

// headerWords is how many words a header has among n ranks.
func headerWords(n int) int {
	if n == 2 {
		return 1
	}
	return n + 2
}

// readHeader reads a header: where the block for this rank begins, its length, where the sender's blocks are, and the
// length of the largest.
func readHeader(n, me int, theirs []uint64) (at, length uint64, where, largest int) {
	if n == 2 {
		length = theirs[0] >> 2
		return 0, length, int(theirs[0] & 3), int(length)
	}
	at = theirs[me]
	length = theirs[me+1] - at
	switch most := theirs[n+1]; {
	case most == offeredV:
		return at, length, vOffered, 0
	case most > 0:
		return at, length, vStaged, int(most)
	}
	return at, length, vBehind, 0
}

// Runs reports whether a collective of that kind goes in rounds: where all ranks are on this host,
// and, of AllToAllV, headers fit, for which half of a slot is enough.
func (c *Team) Runs(k call.Kind) bool {
	return c.n == c.rank.Group.Size() && (k != call.AllToAllV || slotsV(c.n, c.local.Inline))
}

func slotsV(n, inline int) bool { return 8*headerWords(n) <= inline/2 }

// headerOf returns the header in rank r's slot of round.
func headerOf(g *region.Region, r int, round uint32) []uint64 {
	return unsafe.Slice((*uint64)(beginV(g, r, round)), headerWords(g.N))
}

// beginV is where rank r's header of round begins.
func beginV(g *region.Region, r int, round uint32) unsafe.Pointer {
	if g.N == 2 {
		return g.Data(r, round)
	}
	return g.Placed(r, round)
}

func (c *Team) allToAllV(ctx context.Context, k *call.Call) *call.Fault {
	if f := c.offers.acquaint(ctx, k); f != nil {
		return f
	}
	n, room := c.n, c.local.Inline-8*headerWords(c.n)
	var out, in call.Vector
	c.work.BlocksV(k, &out, &in)
	total, largest := 0, 0
	for r := range n {
		if r != c.me {
			size := len(out.Parts(r, r+1))
			total, largest = total+size, max(largest, size)
		}
	}
	where, from := vBehind, shm.Span{}
	if total > room {
		where = vStaged
		// else they are a copy, and staging it is as fast
		if from = c.rank.Site.Here.Host.SpanOf(out.Mem); op.Ptr(k.Src) != op.Ptr(k.Dst) &&
			(c.mem.Known.All || (c.mem.Known.Reads || from.Shared()) && largest >= tuning.ReadFrom || c.mem.Known.Moves &&
				movedPays(&c.local.Layout, k.Kind, largest, n)) {
			where, largest = vOffered, 0
			c.mem.ToBeRead(&from, out.Mem)
			c.offers.toBeFilled(k.Dst)
			c.mem.Lend(out.Mem, nil)
		}
	} else {
		largest = 0
	}
	length, _ := c.staging.layout(c.staging.chunk, n-1) // of a piece

	round, f := c.slots.open(ctx, k, where == vStaged)
	if f != nil {
		return f
	}
	if where == vStaged {
		if f := c.stageV(round, &out, 0, length); f != nil {
			return f
		}
	}
	if n > 2 {
		behind := total
		switch where {
		case vStaged:
			behind = 0
		case vOffered:
			behind = int(unsafe.Sizeof(from))
		}
		if f := c.slots.placeInRing(ctx, k, round, 8*headerWords(n)+behind); f != nil {
			return f
		}
	}
	c.putHeader(round, &out, where, largest, from)
	c.slots.postInline(k, round, 8*headerWords(n)+total)

	keep, kept := out.Parts(c.me, c.me+1), in.Parts(c.me, c.me+1)
	c.mem.TakeOwn(cut(kept, 0, length), cut(keep, 0, length), len(k.Dst))
	staged := c.staged[:0] // by rank, whether its blocks come in pieces
	for r := range n {
		staged = append(staged, r == c.me && where == vStaged)
	}
	c.staged = staged
	wait := where == vOffered
	for i := 1; i < n; i++ {
		r := (c.me + i) % n
		if f := c.slots.await(ctx, k, r, round); f != nil {
			return f
		}
		to := in.Parts(r, r+1)
		at, size, where, most := readHeader(c.n, c.me, headerOf(c.local, r, round))
		if size != uint64(len(to)) {
			own := c.rank.Order.Entered(0)
			other, _ := c.local.Made(r, k.Place)
			return c.rank.Stop(plane.Disagree(own, other, c.rank.Group.LocalRank(r)))
		}
		switch where {
		case vBehind:
			ordered.Get(to, unsafe.Add(behindHeader(c.local, r, round), at))
		case vOffered:
			wait = true
			from := *(*shm.Span)(behindHeader(c.local, r, round))
			f = c.mem.Fill(ctx, r, &from, int(at), to)
		default:
			staged[r], largest = true, max(largest, most)
			f = c.unstageV(r, round, cut(to, 0, length), length)
		}
		if f != nil {
			return f
		}
	}
	c.slots.seen = round
	at := length
	for ; at < largest; at += length {
		if f := c.pieceV(ctx, k, &out, &in, at, length); f != nil {
			return f
		}
		copy(cut(kept, at, length), cut(keep, at, length))
	}
	c.mem.TakeOwn(cut(kept, at, len(kept)), cut(keep, at, len(keep)), len(k.Dst))
	if wait {
		return c.slots.barrier(ctx, k)
	}
	return nil
}

// putHeader writes this rank's header, and behind it the blocks, or from where they are offered.
func (c *Team) putHeader(round uint32, out *call.Vector, where, largest int, from shm.Span) {
	mine, behind := headerOf(c.local, c.me, round), behindHeader(c.local, c.me, round)
	if c.n == 2 {
		b := out.Parts(1-c.me, 2-c.me)
		mine[0] = uint64(len(b))<<2 | uint64(where)
		switch where {
		case vBehind:
			ordered.Put(behind, b)
		case vOffered:
			from.At += uint64(out.At(1 - c.me))
			*(*shm.Span)(behind) = from
		}
		return
	}
	at := 0
	for r := range c.n {
		mine[r] = uint64(at)
		if r == c.me && where != vOffered { // this rank's own lies only there
			continue
		}
		b := out.Parts(r, r+1)
		if where == vBehind {
			ordered.Put(unsafe.Add(behind, at), b)
		}
		at += len(b)
	}
	mine[c.n], mine[c.n+1] = uint64(at), uint64(largest)
	if where == vOffered {
		mine[c.n+1] = offeredV
		*(*shm.Span)(behind) = from
	}
}

// behindHeader returns where the data behind that header begin.
func behindHeader(g *region.Region, r int, round uint32) unsafe.Pointer {
	return unsafe.Add(beginV(g, r, round), 8*headerWords(g.N))
}

// stageV stages length bytes, from at on, of the blocks of the others.
func (c *Team) stageV(round uint32, out *call.Vector, at, length int) *call.Fault {
	to, f := c.staging.stage(c.me, round)
	if f != nil {
		return f
	}
	for r := range c.n {
		if r != c.me {
			ordered.Put(unsafe.Add(to, other(c.me, r)*length), cut(out.Parts(r, r+1), at, length))
		}
	}
	return nil
}

// unstageV receives what rank r has staged in round.
func (c *Team) unstageV(r int, round uint32, piece []byte, length int) *call.Fault {
	from, f := c.staging.stage(r, round)
	if f == nil {
		c.staging.receive(piece, unsafe.Add(from, other(r, c.me)*length), true)
	}
	return f
}

// pieceV is a round in which the staged ranks move what lies from at on in their blocks.
func (c *Team) pieceV(ctx context.Context, k *call.Call, out, in *call.Vector, at, length int) *call.Fault {
	staged := c.staged
	round, f := c.slots.open(ctx, k, true)
	if f != nil {
		return f
	}
	if staged[c.me] {
		if f := c.stageV(round, out, at, length); f != nil {
			return f
		}
	}
	c.slots.post(k, round)
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		piece := cut(in.Parts(r, r+1), at, length)
		if !staged[r] || len(piece) == 0 {
			continue
		}
		if f := c.slots.await(ctx, k, r, round); f != nil {
			return f
		}
		if f := c.unstageV(r, round, piece, length); f != nil {
			return f
		}
	}
	return nil
}

// cut is up to length bytes of b from at on.
func cut(b []byte, at, length int) []byte {
	return b[min(at, len(b)):min(at+length, len(b))]
}
