package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// grouped is what the calls of a group need, and which of them is under way.
type grouped struct {
	collectives []*call.Call
	within      *call.Call // see Within
	fuse        []byte     // operands and results of small calls
	whole       call.Call  // made of those
}

// group makes calls as one. Their point-to-point messages move first, all at once, so a send and
// the receive that crosses it cannot block each other. The collectives follow in their order; small
// ones of one kind, type, operator and root are one exchange. Which are follows from the
// collectives alone: ranks may have other messages, at other places of the group.
func (c *Comm) group(ctx context.Context, calls []*call.Call) *call.Fault {
	g := &c.grouped
	g.within = nil
	if f := c.rank.Begin(nil, false); f != nil { // messages that fit into a pipe would seem sent
		return c.rank.Settle(f)
	}
	c.links.Messages.Begin()
	collectives := g.collectives[:0]
	for _, k := range calls {
		if !k.Kind.Pairwise() {
			collectives = append(collectives, k)
		} else if f := c.links.Pairs.AddPointToPoint(ctx, k); f != nil {
			g.within = k
			return f
		}
	}
	var f *call.Fault
	if c.links.Messages.Pending() { // these go first, to their end
		c.rank.Current.Begin(c.links.Messages.Awaited(), c.rank.Current.Since(), false)
		f = c.links.Messages.Move(ctx)
		g.within = c.links.Messages.Awaited()
		c.rank.EndCall()
	}
	for rest := collectives; f == nil && len(rest) > 0; {
		n := fusible(rest, c.Size())
		g.within = rest[0]
		if n > 1 {
			f = c.fused(ctx, rest[:n])
		} else {
			f = c.one(ctx, rest[0])
		}
		rest = rest[n:]
	}
	clear(collectives)
	g.collectives = collectives[:0]
	return f
}

// Within is the call of the last group that the group has come to: of messages the first that has not ended.
func (c *Comm) Within() *call.Call { return c.grouped.within }

// fusible is how many collectives from the first on can be one, among so many ranks.
func fusible(calls []*call.Call, ranks int) int {
	first, bytes, n := calls[0], 0, 0
	for _, k := range calls {
		if k.Kind != first.Kind || k.Type != first.Type || k.Op != first.Op || k.Root != first.Root {
			break
		}
		switch k.Kind {
		case call.AllReduce, call.Reduce, call.Broadcast, call.AllGather:
		default:
			return 1
		}
		size := int(k.Bytes(ranks))
		if bytes+size > tuning.FuseMax {
			break
		}
		bytes += size
		n++
	}
	return max(n, 1)
}

// fused runs small calls of one kind as one. Its hash is that of all of them, so it
// also compares how they were grouped.
func (c *Comm) fused(ctx context.Context, calls []*call.Call) *call.Fault {
	g, one := &c.grouped, &c.grouped.whole
	*one = *calls[0]
	n := 0 // bytes of a rank's part
	hash := uint32(0)
	for _, k := range calls {
		n += int(k.Count) * k.Elem
		hash = hash*16777619 ^ k.Hash
	}
	parts := 1
	if one.Kind == call.AllGather {
		parts = c.Size()
	}
	if cap(g.fuse) < n*(parts+1) {
		g.fuse = shm.Aligned(2 * tuning.FuseMax)
	}
	src, dst := g.fuse[:n], g.fuse[n:n*(parts+1)]
	at := 0
	for _, k := range calls {
		at += copy(src[at:], k.Src)
	}
	one.Src, one.Dst, one.Count, one.Hash = src, dst, uint64(n/one.Elem), hash|1
	if one.Kind == call.Broadcast {
		one.Dst = src
	}
	if f := c.one(ctx, one); f != nil {
		return f
	}
	if one.Kind == call.Reduce && c.Rank() != int(one.Root) {
		return nil
	}
	at = 0
	for p := range parts {
		for _, k := range calls {
			size := int(k.Count) * k.Elem
			copy(k.Dst[p*size:(p+1)*size], one.Dst[at:])
			at += size
		}
	}
	return nil
}
