package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The collectives among the ranks of one host: a rank posts, the others read what
// they need of it, straight into place. See region for rounds and flags.

// Team is one rank of a host among those of its Comm: the collectives in rounds.
type Team struct {
	Reach
	seen   uint32           // a round that all ranks are known to have posted
	lines  [][]byte         // their staging memory, as far as mapped
	chunk  int              // bytes of a staging slot
	offers []offer          // of the call under way, by rank
	srcs   []unsafe.Pointer // where the operands of a sum are, while they are added
	staged []bool           // of AllToAllV, by rank
	work   *workspace
}

// init readies c, whose Member is.
func (c *Team) init(work *workspace) {
	c.seen, c.chunk, c.work = c.start, tuning.StageChunk(c.n), work
}

// runLocal runs k, all of whose ranks are on this host: a rank of the Comm has the same number there.
func (c *Team) runLocal(ctx context.Context, k *Call) *Fault {
	switch k.Kind {
	case AllReduce:
		return c.localAllReduce(ctx, k)
	case Reduce:
		return c.localReduce(ctx, k)
	case ReduceScatter, ReduceScatterV:
		return c.localReduceScatter(ctx, k)
	case Broadcast:
		return c.localBroadcast(ctx, k)
	case AllGather, AllGatherV:
		return c.localAllGather(ctx, k)
	case Gather, GatherV:
		return c.localGather(ctx, k)
	case Scatter, ScatterV:
		return c.localScatter(ctx, k)
	case AllToAll:
		return c.localAllToAll(ctx, k)
	case AllToAllV:
		return c.localAllToAllV(ctx, k)
	}
	return c.localBarrier(ctx, k)
}

// open begins a round: it waits until the slot of that round has been read by all.
func (c *Team) open(ctx context.Context, k *Call, staged bool) (uint32, *Fault) {
	c.round++
	if !staged && c.seen-c.round+c.local.depth-2 < 1<<31 {
		return c.round, nil
	}
	return c.openLate(ctx, k, staged)
}

// openLate is open where the slot is in staging memory, or it is not known that it has been read.
func (c *Team) openLate(ctx context.Context, k *Call, staged bool) (uint32, *Fault) {
	need := c.round - (tuning.StageDepth - 2)
	if !staged { // some more, so that the next rounds need not look: each look is a line that others write
		need = c.round - (c.local.depth - 2) + c.local.depth/4
	}
	if int32(c.seen-need) >= 0 {
		return c.round, nil
	}
	return c.round, c.catchUp(ctx, k, need)
}

// catchUp waits until all ranks of this host have posted round need.
func (c *Team) catchUp(ctx context.Context, k *Call, need uint32) *Fault {
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		p := c.local.flag(r, need)
		var w waiter
		for looks := 0; int32(uint32(atomic.LoadUint64(p)>>32)-need) < 0; looks++ {
			if looks < c.spins {
				continue
			}
			looks = 0
			if f := c.pause(ctx, &w, c.localRank(r)); f != nil {
				return f
			}
		}
	}
	c.seen = need
	return nil
}

// post says that this rank's data of round is there.
func (c *Team) post(k *Call, round uint32) {
	inject.At("cpu.post")
	ordered.Post(c.local.flag(c.me, round), uint64(round)<<32|uint64(k.Hash), c.local.flag(c.me, round+1))
}

// postInline is post of a round of which n bytes lie in this rank's slot.
func (c *Team) postInline(k *Call, round uint32, n int) {
	c.post(k, round)
	c.claimAhead(round, n)
}

// claimAhead asks for the lines that n bytes of the round after this will take, where that helps: of two ranks the other has
// copies of them.
func (c *Team) claimAhead(round uint32, n int) {
	if tuning.CPU.ClaimAhead && c.n == 2 && n > tuning.BesideFlag && n <= c.local.inline {
		ordered.Claim(c.local.payload(c.me, round+1, n), n)
	}
}

// awaitAll waits for every other rank's post of round.
func (c *Team) awaitAll(ctx context.Context, k *Call, round uint32) *Fault {
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
	c.seen = round
	return nil
}

// stage is where rank r's data of round lie in staging memory.
func (c *Team) stage(r int, round uint32) (unsafe.Pointer, *Fault) {
	mem, f := c.stageOf(c.local.turn(r, round/tuning.StageDepth))
	if f != nil {
		return nil, f
	}
	return unsafe.Pointer(&mem[int(round%tuning.StageDepth)*c.chunk]), nil
}

// stageOf is the staging memory of rank r. It is made on first use, by whoever comes first.
func (c *Team) stageOf(r int) ([]byte, *Fault) {
	if c.lines != nil && c.lines[r] != nil {
		return c.lines[r], nil
	}
	if c.lines == nil {
		c.lines = make([][]byte, c.n)
	}
	off := c.local.stage(r).Load()
	if off == 0 {
		var err error
		if off, err = c.site.host.Alloc(c.stageBytes()); err != nil {
			return nil, c.stop(fault(Backend, c.rank, "%w", err))
		}
		if !c.local.stage(r).CompareAndSwap(0, off) {
			c.site.host.Free(off, c.stageBytes())
			off = c.local.stage(r).Load()
		}
	}
	mem, err := c.site.host.View(off, c.stageBytes())
	if err != nil {
		return nil, c.stop(fault(Backend, c.rank, "%w", err))
	}
	c.lines[r] = mem
	c.views = append(c.views, shm.PlaceAt(off, c.stageBytes()))
	return mem, nil
}

// noSlot, in place of a number of bytes in a slot, says that data lie in staging memory.
const noSlot = -1

// slotOf is where rank r's n bytes of round lie.
func (c *Team) slotOf(r int, round uint32, n int) (unsafe.Pointer, *Fault) {
	if n != noSlot {
		return c.local.payload(r, round, n), nil
	}
	return c.stage(r, round)
}

// begin opens a round and returns where this rank's n bytes of it go.
func (c *Team) begin(ctx context.Context, k *Call, n int) (round uint32, to unsafe.Pointer, f *Fault) {
	if round, f = c.open(ctx, k, n == noSlot); f == nil {
		to, f = c.slotOf(c.me, round, n)
	}
	return round, to, f
}

// fetch waits for rank r's post of round and returns where its n bytes lie.
func (c *Team) fetch(ctx context.Context, k *Call, r int, round uint32, n int) (from unsafe.Pointer, f *Fault) {
	if f = c.await(ctx, k, r, round); f == nil {
		from, f = c.slotOf(r, round, n)
	}
	return from, f
}

// layout says how a call whose ranks each post some blocks is cut into rounds:
// length bytes of every block at a time, and how many bytes each rank has in its slot. All ranks compute the same.
func (c *Team) layout(block, blocks int) (length, inSlot int) {
	if block*blocks <= c.local.inline {
		return block, block * blocks
	}
	length = c.chunk / max(blocks, 1)
	if length >= 64 {
		return length &^ 63, noSlot
	}
	return length &^ 7, noSlot
}

// foldAll reduces n bytes at offset from of every rank's slot, in which inSlot bytes lie, into dst, in rank
// order; own, where not nil, stands for this rank's slot. The sums of more than two 16-bit floats are rounded once.
func (c *Team) foldAll(k *Call, dst unsafe.Pointer, round uint32, inSlot int, from func(r int) int, own unsafe.Pointer, n int, stream bool) *Fault {
	operand := func(r, i int) (unsafe.Pointer, *Fault) {
		if r == c.me && own != nil {
			return unsafe.Add(own, i), nil
		}
		p, f := c.slotOf(r, round, inSlot)
		if f != nil {
			return nil, f
		}
		return unsafe.Add(p, from(r)+i), nil
	}
	fold := k.Fold
	if c.n == 2 && stream {
		fold = k.Stream
	}
	step := tuning.FoldPiece
	var theirs unsafe.Pointer // the other's of two ranks, of which the next step's lines are claimed: see receive
	if c.n == 2 {
		step = max(n, 1)
		if inSlot == noSlot {
			var f *Fault
			if theirs, f = operand(1-c.me, 0); f != nil {
				return f
			}
			step = tuning.ClaimPiece
			ordered.Claim(theirs, min(step, n))
		}
	}
	for i := 0; i < n; i += step {
		if next := i + step; theirs != nil && next < n {
			ordered.Claim(unsafe.Add(theirs, next), min(step, n-next))
		}
		m := min(step, n-i)
		to := unsafe.Add(dst, i)
		if k.sumsAll(c.n) {
			srcs := c.operands(c.n)
			for r := range srcs {
				var f *Fault
				if srcs[r], f = operand(r, i); f != nil {
					return f
				}
			}
			k.sumAll(to, srcs, m)
			continue
		}
		a, f := operand(0, i)
		if f != nil {
			return f
		}
		for r := 1; r < c.n; r++ {
			b, f := operand(r, i)
			if f != nil {
				return f
			}
			fold(to, a, b, m/k.Elem)
			a = to
		}
		if k.Scale != nil {
			k.Scale(to, m/k.Elem, c.n)
		}
	}
	return nil
}

func zero(int) int { return 0 }
