package cpu

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/algo"
)

// The collectives of Comms that span hosts: schedules over links.

func (c *Links) runRemote(ctx context.Context, k *Call) *Fault {
	s, f := c.schedule(k)
	if f != nil {
		return f
	}
	switch k.Kind {
	case AllReduce:
		if f := c.runFrom(ctx, k, s, k.Src, even(k.Dst, s.Parts), 0); f != nil {
			return f
		}
		c.scale(k, k.Dst)
		return nil
	case Reduce:
		return c.remoteReduce(ctx, k, s)
	case Broadcast:
		v := even(k.Dst, s.Parts)
		return c.run(ctx, k, s, v, v, 0)
	case AllGather, AllGatherV:
		v := k.blocks(k.Dst)
		own := v.parts(c.rank, c.rank+1)
		if ptr(own) != ptr(k.Src) {
			copy(own, k.Src)
		}
		return c.run(ctx, k, s, v, v, 0)
	case ReduceScatter, ReduceScatterV, Gather, GatherV, Scatter, ScatterV:
		return c.remoteBlocks(ctx, k, s)
	case AllToAll:
		return c.remoteAllToAll(ctx, k, s)
	}
	return c.run(ctx, k, s, vector{}, vector{}, 0) // Barrier
}

// scale ends an Avg: b holds sums.
func (c *Links) scale(k *Call, b []byte) {
	if k.Scale == nil {
		return
	}
	for len(b) > 0 { // a piece at a time, so that the collector need not wait
		n := min(len(b), tuning.SyscallPiece)
		k.Scale(unsafe.Pointer(&b[0]), n/k.Elem, c.Size())
		b = b[n:]
	}
}

// remoteReduce reduces a slice at a time, since ranks other than the root need
// memory to reduce into.
func (c *Links) remoteReduce(ctx context.Context, k *Call, s algo.Schedule) *Fault {
	for i := range pieces(len(k.Src), tuning.SlicePiece) {
		src := k.Src[i*tuning.SlicePiece : min((i+1)*tuning.SlicePiece, len(k.Src))]
		var mem []byte
		if c.rank == int(k.Root) {
			mem = k.Dst[i*tuning.SlicePiece:][:len(src)]
		} else {
			mem = c.work.scratch(len(src))
		}
		if f := c.runFrom(ctx, k, s, src, even(mem, s.Parts), i); f != nil {
			return f
		}
		if c.rank == int(k.Root) {
			c.scale(k, mem)
		}
	}
	return nil
}

// remoteBlocks runs what needs memory for the blocks of other ranks, a slice of all
// blocks at a time.
func (c *Links) remoteBlocks(ctx context.Context, k *Call, s algo.Schedule) *Fault {
	n, largest := c.Size(), k.largest()
	length := max(tuning.SlicePiece/n&^63, 64)
	for i := range pieces(largest, length) {
		at := i * length
		v := c.sliceOf(k, at, length)
		fill := func(r int) { copy(v.parts(r, r+1), k.piece(k.Src, r, at, length)) }
		switch k.Kind {
		case ReduceScatter, ReduceScatterV:
			for r := range n {
				fill(r)
			}
		case Scatter, ScatterV:
			if c.rank == int(k.Root) {
				for r := range n {
					fill(r)
				}
			}
		default:
			copy(v.parts(c.rank, c.rank+1), k.Src[min(at, len(k.Src)):])
		}
		if f := c.run(ctx, k, s, v, v, i); f != nil {
			return f
		}
		mine := v.parts(c.rank, c.rank+1)
		switch k.Kind {
		case ReduceScatter, ReduceScatterV:
			c.scale(k, mine)
			copy(k.Dst[min(at, len(k.Dst)):], mine)
		case Scatter, ScatterV:
			copy(k.Dst[min(at, len(k.Dst)):], mine)
		default:
			if c.rank == int(k.Root) {
				for r := range n {
					copy(k.piece(k.Dst, r, at, length), v.parts(r, r+1))
				}
			}
		}
	}
	return nil
}

// sliceOf is scratch memory for length bytes, from at on, of each block.
func (c *Links) sliceOf(k *Call, at, length int) vector {
	n := c.Size()
	if k.offsets == nil {
		size := max(min(length, k.largest()-at), 0)
		return vector{mem: c.work.scratch(n * size), size: size}
	}
	offs := append(c.exec.slice[:0], 0)
	for r := range n {
		offs = append(offs, offs[r]+min(at+length, k.blockLen(r))-min(at, k.blockLen(r)))
	}
	c.exec.slice = offs
	return vector{mem: c.work.scratch(offs[n]), offsets: offs}
}

// remoteAllToAll goes in slices of every block, which are set aside first where dst
// is src. That is a rank's own affair: the messages are the same.
func (c *Links) remoteAllToAll(ctx context.Context, k *Call, s algo.Schedule) *Fault {
	n, block := c.Size(), k.largest()
	inPlace := ptr(k.Dst) == ptr(k.Src)
	if !inPlace {
		takeOwn(k.piece(k.Dst, c.rank, 0, block), k.piece(k.Src, c.rank, 0, block), len(k.Dst))
	}
	length := max(tuning.SlicePiece/n&^63, 64)
	for i := range pieces(block, length) {
		size := min(length, block-i*length)
		out := vector{mem: k.Src, size: size, stride: block, from: i * length}
		in := vector{mem: k.Dst, size: size, stride: block, from: i * length}
		if inPlace {
			aside := vector{mem: c.work.scratch(n * size), size: size}
			for r := range n {
				copy(aside.parts(r, r+1), out.parts(r, r+1))
			}
			out = aside
		}
		if f := c.run(ctx, k, s, out, in, i); f != nil {
			return f
		}
	}
	return nil
}

// remoteAllToAllV: only the two ends of a message know its length, so it goes pair by
// pair, inside a host as well.
func (c *Links) remoteAllToAllV(ctx context.Context, k *Call) *Fault {
	s, f := c.schedule(k)
	if f != nil {
		return f
	}
	var out, in vector
	c.work.blocksV(k, &out, &in)
	copy(in.parts(c.rank, c.rank+1), out.parts(c.rank, c.rank+1))
	return c.run(ctx, k, s, out, in, 0)
}
