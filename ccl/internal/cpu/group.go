package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// RunGroup makes calls as one: their point-to-point messages move at once, so a
// send and the receive that crosses it cannot block each other; small
// calls of one kind, type, operator and root are one exchange.
func (c *Comm) RunGroup(ctx context.Context, calls []*Call) *Fault {
	if f := c.proposal.Load(); f != nil { // messages that fit into a pipe would seem sent
		return c.settle(f)
	}
	c.began = c.site.clock()
	e := &c.links.exec
	e.tx, e.rx = e.tx[:0], e.rx[:0]
	for _, k := range calls {
		if k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv {
			if f := c.links.addPointToPoint(ctx, k); f != nil {
				return f
			}
		}
	}
	if len(e.tx)+len(e.rx) > 0 {
		c.lockstep, c.running = false, calls[0]
		f := c.links.move(ctx, e.tx, e.rx)
		if c.running == nil {
			c.rouse()
		}
		c.running = nil
		c.wake()
		if f != nil {
			return f
		}
	}
	for i := 0; i < len(calls); {
		k := calls[i]
		if k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv {
			i++
			continue
		}
		n := c.fusible(calls[i:])
		var f *Fault
		if n > 1 {
			f = c.fused(ctx, calls[i:i+n])
		} else {
			f = c.Run(ctx, k)
		}
		if f != nil {
			return f
		}
		i += n
	}
	return nil
}

// fusible is how many calls from the first on can be one.
func (c *Comm) fusible(calls []*Call) int {
	first, bytes, n := calls[0], 0, 0
	for _, k := range calls {
		if k.Kind != first.Kind || k.Type != first.Type || k.Op != first.Op || k.Root != first.Root {
			break
		}
		switch k.Kind {
		case AllReduce, Reduce, Broadcast, AllGather:
		default:
			return 1
		}
		size := int(k.bytes(c.Size()))
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
func (c *Comm) fused(ctx context.Context, calls []*Call) *Fault {
	one := &c.one
	*one = *calls[0]
	n := 0 // bytes of a rank's part
	hash := uint32(0)
	for _, k := range calls {
		n += int(k.Count) * k.Elem
		hash = hash*16777619 ^ k.Hash
	}
	parts := 1
	if one.Kind == AllGather {
		parts = c.Size()
	}
	if cap(c.fuse) < n*(parts+1) {
		c.fuse = shm.Aligned(2 * tuning.FuseMax)
	}
	src, dst := c.fuse[:n], c.fuse[n:n*(parts+1)]
	at := 0
	for _, k := range calls {
		at += copy(src[at:], k.Src)
	}
	one.Src, one.Dst, one.Count, one.Hash = src, dst, uint64(n/one.Elem), hash|1
	if one.Kind == Broadcast {
		one.Dst = src
	}
	if f := c.Run(ctx, one); f != nil {
		return f
	}
	if one.Kind == Reduce && c.rank != int(one.Root) {
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
