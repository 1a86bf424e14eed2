package links

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// The collectives of Comms that span hosts: schedules over links.

// RunRemote runs a collective by a schedule over links.
func (c *Links) RunRemote(ctx context.Context, k *call.Call) *call.Fault {
	if k.Inside == call.MonitoredBarrier {
		return c.callRoll(ctx, k)
	}
	s, f := c.schedule(ctx, k)
	if f != nil {
		return f
	}
	switch k.Kind {
	case call.AllReduce:
		if k.Wide != nil {
			return c.remoteReduce(ctx, k, s)
		}
		if f := c.runFrom(ctx, k, s, k.Src, call.Even(k.Dst, s.Parts), 0); f != nil {
			return f
		}
		c.scale(k, k.Dst)
		return nil
	case call.Reduce:
		return c.remoteReduce(ctx, k, s)
	case call.Broadcast:
		v := call.Even(k.Dst, s.Parts)
		return c.run(ctx, k, s, v, v, 0)
	case call.AllGather, call.AllGatherV:
		v := call.Blocks(k, k.Dst)
		own := v.Parts(c.rank.Group.Rank(), c.rank.Group.Rank()+1)
		if op.Ptr(own) != op.Ptr(k.Src) {
			copy(own, k.Src)
		}
		return c.run(ctx, k, s, v, v, 0)
	case call.ReduceScatter, call.ReduceScatterV, call.Gather, call.GatherV, call.Scatter, call.ScatterV:
		return c.remoteBlocks(ctx, k, s)
	case call.AllToAll:
		return c.remoteAllToAll(ctx, k, s)
	}
	return c.run(ctx, k, s, call.Vector{}, call.Vector{}, 0) // Barrier
}

// callRoll runs the tree that [plane.Unfinished] follows to the ranks that are late.
func (c *Links) callRoll(ctx context.Context, k *call.Call) *call.Fault {
	s := algo.RollCall(c.rank.Group.Topology(), c.rank.Group.Rank())
	if f := c.connect(ctx, s); f != nil {
		return f
	}
	return c.run(ctx, k, s, call.Vector{}, call.Vector{}, 0)
}

// scale ends an Avg: b holds sums, or shares if k Weighs.
func (c *Links) scale(k *call.Call, b []byte) {
	if k.Scale == nil && !k.Weighs {
		return
	}
	for len(b) > 0 { // a piece at a time, so that the collector need not wait
		n := min(len(b), tuning.PreemptPiece)
		if k.Weighs {
			k.Last(unsafe.Pointer(&b[0]), n, c.rank.Group.Size())
		} else {
			k.Scale(unsafe.Pointer(&b[0]), n/k.Elem, c.rank.Group.Size())
		}
		b = b[n:]
	}
}

// widening is by how much elements of that size grow in a call that is Wide.
func widening(elem int) int { return op.WideElem / elem }

// inside is k as its schedule makes it: with elements of 32 bits where it is Wide.
func (c *Links) inside(k *call.Call) *call.Call {
	if k.Wide == nil {
		return k
	}
	c.wide = call.Call{Head: k.Head, Elem: op.WideElem, Fold: k.Wide.Fold}
	return &c.wide
}

// remoteReduce reduces a slice at a time: ranks other than the root, and all ranks of a call that
// is Wide, need memory to reduce into.
func (c *Links) remoteReduce(ctx context.Context, k *call.Call, s algo.Schedule) *call.Fault {
	ends, n, length := k.Kind == call.AllReduce || c.rank.Group.Rank() == int(k.Root), c.rank.Group.Size(),
		tuning.SlicePiece
	if k.Wide != nil {
		length /= widening(k.Elem)
	}
	for i := range call.Pieces(len(k.Src), length) {
		src := k.Src[i*length : min((i+1)*length, len(k.Src))]
		var dst []byte
		if ends {
			dst = k.Dst[i*length:][:len(src)]
		}
		mem := dst
		switch {
		case k.Wide != nil:
			mem = c.Pairs.work.Scratch(widening(k.Elem) * len(src))
			k.Wide.From(op.Ptr(mem), op.Ptr(src), len(src)/k.Elem, n)
			src = mem
		case !ends:
			mem = c.Pairs.work.Scratch(len(src))
		}
		if f := c.runFrom(ctx, c.inside(k), s, src, call.Even(mem, s.Parts), i); f != nil {
			return f
		}
		switch {
		case ends && k.Wide != nil:
			k.Wide.To(op.Ptr(dst), op.Ptr(mem), len(dst)/k.Elem, n)
		case ends:
			c.scale(k, mem)
		}
	}
	return nil
}

// remoteBlocks runs what has a block for each rank, a slice of all blocks at a time: in the
// caller's memory, as far as that goes, else in memory for the blocks of other ranks.
func (c *Links) remoteBlocks(ctx context.Context, k *call.Call, s algo.Schedule) *call.Fault {
	n, largest := c.rank.Group.Size(), k.Largest()
	length := max(tuning.SlicePiece/n&^63, 64)
	for i := range call.Pieces(largest, length) {
		at := i * length
		switch k.Kind {
		case call.ReduceScatter, call.ReduceScatterV:
			v := c.sliceOf(k, at, length)
			src := v.Mem
			switch {
			case k.Wide != nil:
				v = c.widened(v, widening(k.Elem))
				src = v.Mem
				for r := range n {
					to := v.Parts(r, r+1)
					k.Wide.From(op.Ptr(to), op.Ptr(k.Piece(k.Src, r, at, length)), len(to)/op.WideElem, n)
				}
			case largest <= length:
				src = k.Src[:len(v.Mem)]
			default:
				for r := range n {
					copy(v.Parts(r, r+1), k.Piece(k.Src, r, at, length))
				}
			}
			if f := c.runFrom(ctx, c.inside(k), s, src, v, i); f != nil {
				return f
			}
			mine, dst := v.Parts(c.rank.Group.Rank(), c.rank.Group.Rank()+1), k.Dst[min(at, len(k.Dst)):]
			if k.Wide != nil {
				k.Wide.To(op.Ptr(dst), op.Ptr(mine), len(mine)/op.WideElem, n)
				break
			}
			c.scale(k, mine)
			copy(dst, mine)
		case call.Scatter, call.ScatterV:
			if f := c.scatterSlice(ctx, k, s, i, at, length); f != nil {
				return f
			}
		default:
			if f := c.gatherSlice(ctx, k, s, i, at, length); f != nil {
				return f
			}
		}
	}
	return nil
}

// scatterSlice is slice i of a Scatter: length bytes of each block, from at on.
func (c *Links) scatterSlice(ctx context.Context, k *call.Call, s algo.Schedule, i, at, length int) *call.Fault {
	n, me := c.rank.Group.Size(), c.rank.Group.Rank()
	root := me == int(k.Root)
	v, inPlace := c.inPlace(k, s, k.Src, k.Dst, at, length)
	if !inPlace {
		v = c.sliceOf(k, at, length)
		for r := 0; root && r < n; r++ {
			copy(v.Parts(r, r+1), k.Piece(k.Src, r, at, length))
		}
	}
	if f := c.run(ctx, k, s, v, v, i); f != nil {
		return f
	}
	switch {
	case root:
		copy(k.Dst[min(at, len(k.Dst)):], k.Piece(k.Src, me, at, length))
	case !inPlace:
		copy(k.Dst[min(at, len(k.Dst)):], v.Parts(me, me+1))
	}
	return nil
}

// gatherSlice is slice i of a Gather.
func (c *Links) gatherSlice(ctx context.Context, k *call.Call, s algo.Schedule, i, at, length int) *call.Fault {
	n, me := c.rank.Group.Size(), c.rank.Group.Rank()
	root := me == int(k.Root)
	v, inPlace := c.inPlace(k, s, k.Dst, k.Src, at, length)
	mine := k.Src[min(at, len(k.Src)):min(at+length, len(k.Src))]
	switch {
	case root && inPlace:
		copy(k.Piece(k.Dst, me, at, length), mine)
	case !inPlace:
		v = c.sliceOf(k, at, length)
		copy(v.Parts(me, me+1), mine)
	}
	if f := c.run(ctx, k, s, v, v, i); f != nil {
		return f
	}
	for r := 0; root && !inPlace && r < n; r++ {
		copy(k.Piece(k.Dst, r, at, length), v.Parts(r, r+1))
	}
	return nil
}

// inPlace is what a slice of a call with a root runs on in the caller's memory: at the root all,
// the blocks of all ranks; at a rank that passes nothing on, own, its block. It is false where that
// does not do.
func (c *Links) inPlace(k *call.Call, s algo.Schedule, all, own []byte, at, length int) (v call.Vector, ok bool) {
	me, single, mine := c.rank.Group.Rank(), true, true
	root := me == int(k.Root)
	if root && k.Largest() <= length {
		return call.Blocks(k, all), true
	}
	for i := range s.Steps {
		s.At(i, &c.step)
		for _, moves := range [...][]algo.Move{c.step.Send, c.step.Recv} {
			for _, m := range moves {
				single = single && m.Hi == m.Lo+1
				mine = mine && m.Lo == me && m.Hi == me+1
			}
		}
	}
	if !root { // part me begins at 0
		own = own[min(at, len(own)):min(at+length, len(own))]
		return call.Vector{Mem: own, Size: len(own), Stride: 1, From: -me}, mine
	}
	size := min(length, k.Largest()-at)
	return call.Vector{Mem: all, Size: size, Stride: k.Largest(), From: at}, k.Offsets == nil && single
}

// sliceOf is scratch memory for length bytes, from at on, of each block.
func (c *Links) sliceOf(k *call.Call, at, length int) call.Vector {
	n := c.rank.Group.Size()
	if k.Offsets == nil {
		size := max(min(length, k.Largest()-at), 0)
		return call.Vector{Mem: c.Pairs.work.Scratch(n * size), Size: size}
	}
	offs := append(c.slice[:0], 0)
	for r := range n {
		offs = append(offs, offs[r]+min(at+length, k.BlockLen(r))-min(at, k.BlockLen(r)))
	}
	c.slice = offs
	return call.Vector{Mem: c.Pairs.work.Scratch(offs[n]), Offsets: offs}
}

// widened is scratch memory for v, what sliceOf has given, with elements that are larger by a factor.
func (c *Links) widened(v call.Vector, by int) call.Vector {
	for r := range v.Offsets { // those in c.slice
		v.Offsets[r] *= by
	}
	v.Size *= by
	v.Mem = c.Pairs.work.Scratch(by * len(v.Mem))
	return v
}

// remoteAllToAll goes in slices of every block, which are set aside first where dst
// is src. That is a rank's own affair: the messages are the same.
func (c *Links) remoteAllToAll(ctx context.Context, k *call.Call, s algo.Schedule) *call.Fault {
	n, block := c.rank.Group.Size(), k.Largest()
	inPlace := op.Ptr(k.Dst) == op.Ptr(k.Src)
	if !inPlace {
		c.mem.TakeOwn(k.Piece(k.Dst, c.rank.Group.Rank(), 0, block), k.Piece(k.Src, c.rank.Group.Rank(), 0, block),
			len(k.Dst))
	}
	length := max(tuning.SlicePiece/n&^63, 64)
	for i := range call.Pieces(block, length) {
		size := min(length, block-i*length)
		out := call.Vector{Mem: k.Src, Size: size, Stride: block, From: i * length}
		in := call.Vector{Mem: k.Dst, Size: size, Stride: block, From: i * length}
		if inPlace {
			aside := call.Vector{Mem: c.Pairs.work.Scratch(n * size), Size: size}
			for r := range n {
				copy(aside.Parts(r, r+1), out.Parts(r, r+1))
			}
			out = aside
		}
		if f := c.run(ctx, k, s, out, in, i); f != nil {
			return f
		}
	}
	return nil
}

// RemoteAllToAllV makes an AllToAllV: only the two ends of a message know its length, so it goes pair by
// pair, inside a host as well.
func (c *Links) RemoteAllToAllV(ctx context.Context, k *call.Call) *call.Fault {
	s, f := c.schedule(ctx, k)
	if f != nil {
		return f
	}
	var out, in call.Vector
	c.Pairs.work.BlocksV(k, &out, &in)
	copy(in.Parts(c.rank.Group.Rank(), c.rank.Group.Rank()+1), out.Parts(c.rank.Group.Rank(), c.rank.Group.Rank()+1))
	return c.run(ctx, k, s, out, in, 0)
}
