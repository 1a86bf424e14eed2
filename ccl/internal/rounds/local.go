package rounds

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The collectives among the ranks of one host: a rank posts, the others read what
// they need of it, straight into place. See region for rounds and flags.

// Team is one rank of a host among those of its Comm: the collectives in rounds.
type Team struct {
	reach.Reach
	seen   uint32           // a round that all ranks are known to have posted
	lines  [][]byte         // their staging memory, as far as mapped
	chunk  int              // bytes of a staging slot
	offers []offer          // of the call under way, by rank
	srcs   []unsafe.Pointer // where the operands of a sum are, while they are added
	staged []bool           // of AllToAllV, by rank
	work   *call.Workspace
}

// Init readies c, whose Member is.
func (c *Team) Init(work *call.Workspace) {
	c.seen, c.chunk, c.work = c.Start, tuning.StageChunk(c.N), work
}

// RunLocal runs k, all of whose ranks are on this host: a rank of the Comm has the same number there.
func (c *Team) RunLocal(ctx context.Context, k *call.Call) *call.Fault {
	switch k.Kind {
	case call.AllReduce:
		return c.localAllReduce(ctx, k)
	case call.Reduce:
		return c.localReduce(ctx, k)
	case call.ReduceScatter, call.ReduceScatterV:
		return c.localReduceScatter(ctx, k)
	case call.Broadcast:
		return c.localBroadcast(ctx, k)
	case call.AllGather, call.AllGatherV:
		return c.localAllGather(ctx, k)
	case call.Gather, call.GatherV:
		return c.localGather(ctx, k)
	case call.Scatter, call.ScatterV:
		return c.localScatter(ctx, k)
	case call.AllToAll:
		return c.localAllToAll(ctx, k)
	case call.AllToAllV:
		return c.localAllToAllV(ctx, k)
	}
	return c.LocalBarrier(ctx, k)
}

// open begins a round: it waits until the slot of that round has been read by all.
func (c *Team) open(ctx context.Context, k *call.Call, staged bool) (uint32, *call.Fault) {
	c.Round++
	if !staged && c.seen-c.Round+c.Local.Depth-2 < 1<<31 {
		return c.Round, nil
	}
	return c.openLate(ctx, k, staged)
}

// openLate is open where the slot is in staging memory, or it is not known that it has been read.
func (c *Team) openLate(ctx context.Context, k *call.Call, staged bool) (uint32, *call.Fault) {
	need := c.Round - (tuning.StageDepth - 2)
	if !staged { // some more, so that the next rounds need not look: each look is a line that others write
		need = c.Round - (c.Local.Depth - 2) + c.Local.Depth/4
	}
	if int32(c.seen-need) >= 0 {
		return c.Round, nil
	}
	return c.Round, c.catchUp(ctx, k, need)
}

// catchUp waits until all ranks of this host have posted round need.
func (c *Team) catchUp(ctx context.Context, k *call.Call, need uint32) *call.Fault {
	for i := 1; i < c.N; i++ {
		r := (c.Me + i) % c.N
		p := c.Local.Flag(r, need)
		var w plane.Waiter
		for looks := 0; int32(uint32(atomic.LoadUint64(p)>>32)-need) < 0; looks++ {
			if looks < c.Spins {
				continue
			}
			looks = 0
			if f := c.Pause(ctx, &w, c.LocalRank(r)); f != nil {
				return f
			}
		}
	}
	c.seen = need
	return nil
}

// post says that this rank's data of round is there.
func (c *Team) post(k *call.Call, round uint32) {
	inject.At("cpu.post")
	ordered.Post(c.Local.Flag(c.Me, round), uint64(round)<<32|uint64(k.Hash), c.Local.Flag(c.Me, round+1))
}

// postInline is post of a round of which n bytes lie in this rank's slot.
func (c *Team) postInline(k *call.Call, round uint32, n int) {
	c.post(k, round)
	c.claimAhead(round, n)
}

// claimAhead asks for the lines that n bytes of the round after this will take, where that helps: of two ranks the other has
// copies of them.
func (c *Team) claimAhead(round uint32, n int) {
	if tuning.CPU.ClaimAhead && c.N == 2 && n > tuning.BesideFlag && n <= c.Local.Inline {
		ordered.Claim(c.Local.Payload(c.Me, round+1, n), n)
	}
}

// awaitAll waits for every other rank's post of round.
func (c *Team) awaitAll(ctx context.Context, k *call.Call, round uint32) *call.Fault {
	for r := c.Me + 1; r < c.N; r++ {
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
	}
	for r := range c.Me {
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
	}
	c.seen = round
	return nil
}

// stage is where rank r's data of round lie in staging memory.
func (c *Team) stage(r int, round uint32) (unsafe.Pointer, *call.Fault) {
	mem, f := c.stageOf(c.Local.Turn(r, round/tuning.StageDepth))
	if f != nil {
		return nil, f
	}
	return unsafe.Pointer(&mem[int(round%tuning.StageDepth)*c.chunk]), nil
}

// stageOf is the staging memory of rank r. It is made on first use, by whoever comes first.
func (c *Team) stageOf(r int) ([]byte, *call.Fault) {
	if c.lines != nil && c.lines[r] != nil {
		return c.lines[r], nil
	}
	if c.lines == nil {
		c.lines = make([][]byte, c.N)
	}
	off := c.Local.Stage(r).Load()
	if off == 0 {
		var err error
		if off, err = c.Site.Host.Alloc(c.stageBytes()); err != nil {
			return nil, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
		}
		if !c.Local.Stage(r).CompareAndSwap(0, off) {
			c.Site.Host.Free(off, c.stageBytes())
			off = c.Local.Stage(r).Load()
		}
	}
	mem, err := c.Site.Host.View(off, c.stageBytes())
	if err != nil {
		return nil, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
	}
	c.lines[r] = mem
	c.Views = append(c.Views, shm.PlaceAt(off, c.stageBytes()))
	return mem, nil
}

// NoSlot, in place of a number of bytes in a slot, says that data lie in staging memory.
const NoSlot = -1

// slotOf is where rank r's n bytes of round lie.
func (c *Team) slotOf(r int, round uint32, n int) (unsafe.Pointer, *call.Fault) {
	if n != NoSlot {
		return c.Local.Payload(r, round, n), nil
	}
	return c.stage(r, round)
}

// begin opens a round and returns where this rank's n bytes of it go.
func (c *Team) begin(ctx context.Context, k *call.Call, n int) (round uint32, to unsafe.Pointer, f *call.Fault) {
	if round, f = c.open(ctx, k, n == NoSlot); f == nil {
		to, f = c.slotOf(c.Me, round, n)
	}
	return round, to, f
}

// fetch waits for rank r's post of round and returns where its n bytes lie.
func (c *Team) fetch(ctx context.Context, k *call.Call, r int, round uint32, n int) (from unsafe.Pointer, f *call.Fault) {
	if f = c.await(ctx, k, r, round); f == nil {
		from, f = c.slotOf(r, round, n)
	}
	return from, f
}

// Layout says how a call whose ranks each post some blocks is cut into rounds:
// length bytes of every block at a time, and how many bytes each rank has in its slot. All ranks compute the same.
func (c *Team) Layout(block, blocks int) (length, inSlot int) {
	if block*blocks <= c.Local.Inline {
		return block, block * blocks
	}
	length = c.chunk / max(blocks, 1)
	if length >= 64 {
		return length &^ 63, NoSlot
	}
	return length &^ 7, NoSlot
}

// foldAll reduces n bytes at offset from of every rank's slot, in which inSlot bytes lie, into dst, in rank
// order; own, where not nil, stands for this rank's slot. The sums of more than two 16-bit floats are rounded once.
func (c *Team) foldAll(k *call.Call, dst unsafe.Pointer, round uint32, inSlot int, from func(r int) int, own unsafe.Pointer, n int, stream bool) *call.Fault {
	operand := func(r, i int) (unsafe.Pointer, *call.Fault) {
		if r == c.Me && own != nil {
			return unsafe.Add(own, i), nil
		}
		p, f := c.slotOf(r, round, inSlot)
		if f != nil {
			return nil, f
		}
		return unsafe.Add(p, from(r)+i), nil
	}
	fold := k.Fold
	if c.N == 2 && stream {
		fold = k.Stream
	}
	step := tuning.FoldPiece
	var theirs unsafe.Pointer // the other's of two ranks, of which the next step's lines are claimed: see receive
	if c.N == 2 {
		step = max(n, 1)
		if inSlot == NoSlot {
			var f *call.Fault
			if theirs, f = operand(1-c.Me, 0); f != nil {
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
		if k.SumsAll(c.N) {
			srcs := c.operands(c.N)
			for r := range srcs {
				var f *call.Fault
				if srcs[r], f = operand(r, i); f != nil {
					return f
				}
			}
			k.SumAll(to, srcs, m)
			continue
		}
		a, f := operand(0, i)
		if f != nil {
			return f
		}
		for r := 1; r < c.N; r++ {
			b, f := operand(r, i)
			if f != nil {
				return f
			}
			fold(to, a, b, m/k.Elem)
			a = to
		}
		if k.Scale != nil {
			k.Scale(to, m/k.Elem, c.N)
		}
	}
	return nil
}

func zero(int) int { return 0 }
