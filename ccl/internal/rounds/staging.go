package rounds

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// staging is where the data of a round lie: in the slots, or in the staging memory of each rank.
type staging struct {
	seat
	slots *slots
	lines [][]byte // the staging memory of each rank, as far as it is mapped
	chunk int      // bytes of a staging slot
	sent  rings
}

// stage is where rank r's data of round lie in staging memory.
func (c *staging) stage(r int, round uint32) (unsafe.Pointer, *call.Fault) {
	mem, f := c.stageOf(c.local.Turn(r, round/tuning.StageDepth))
	if f != nil {
		return nil, f
	}
	return unsafe.Pointer(&mem[int(round%tuning.StageDepth)*c.chunk]), nil
}

// stageOf is the staging memory of rank r. The rank that needs it first makes it.
func (c *staging) stageOf(r int) ([]byte, *call.Fault) {
	if c.lines != nil && c.lines[r] != nil {
		return c.lines[r], nil
	}
	if c.lines == nil {
		c.lines = make([][]byte, c.n)
	}
	var f *call.Fault
	c.lines[r], f = c.memory(c.local.Stage(r), tuning.StageBytes(c.n))
	return c.lines[r], f
}

// memory is what lies at the offset in at, so many bytes. If nothing does, it makes that.
func (c *staging) memory(at *atomic.Uint64, bytes int) ([]byte, *call.Fault) {
	mem, err := c.rank.Share.Map(at, bytes, true)
	if err != nil {
		return nil, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
	}
	return mem, nil
}

// noSlot, in place of a number of bytes in a slot, says that data lie in staging memory.
const noSlot = -1

// slotOf is where rank r's n bytes of round lie.
func (c *staging) slotOf(r int, round uint32, n int) (unsafe.Pointer, *call.Fault) {
	if n != noSlot {
		return c.slots.at(r, round, n), nil
	}
	return c.stage(r, round)
}

// returns reports whether a rank that reads n bytes of the other, or staged ones, writes there next.
func (c *staging) returns(n int) bool { return n == noSlot || n >= c.slots.swap }

// begin opens a round and returns where this rank's n bytes of it go.
func (c *staging) begin(ctx context.Context, k *call.Call, n int) (round uint32, to unsafe.Pointer, f *call.Fault) {
	if round, f = c.slots.open(ctx, k, n == noSlot); f == nil {
		to, f = c.room(ctx, k, round, n)
	}
	return round, to, f
}

// room is where this rank's n bytes of round, which it has opened, go.
func (c *staging) room(ctx context.Context, k *call.Call, round uint32, n int) (unsafe.Pointer, *call.Fault) {
	if f := c.slots.place(ctx, k, round, n); f != nil {
		return nil, f
	}
	return c.slotOf(c.me, round, n)
}

// fetch waits for rank r's post of round and returns where its n bytes lie.
func (c *staging) fetch(ctx context.Context, k *call.Call, r int, round uint32,
	n int) (from unsafe.Pointer, f *call.Fault) {
	if f = c.slots.await(ctx, k, r, round); f == nil {
		from, f = c.slotOf(r, round, n)
	}
	return from, f
}

// layout says how a call whose ranks each post some blocks is cut into rounds:
// length bytes of every block at a time, and how many bytes each rank has in its slot. All ranks compute the same.
func (c *staging) layout(block, blocks int) (length, inSlot int) {
	if block*blocks <= c.local.Inline {
		return block, block * blocks
	}
	length = c.chunk / max(blocks, 1)
	switch { // whole lines, or at least whole elements, which have 16 bytes at most
	case length >= 64:
		return length &^ 63, noSlot
	case length >= 16:
		return length &^ 15, noSlot
	}
	return length &^ 7, noSlot
}

// receive is Get of what another rank has staged, or has in a slot, in a call in which all post and
// all read where bothWays is set: of two ranks the reader writes there next, so it takes the lines
// as its own.
func (c *staging) receive(dst []byte, from unsafe.Pointer, bothWays bool) {
	if c.n != 2 || !bothWays {
		ordered.Get(dst, from)
		return
	}
	n := len(dst)
	ordered.Claim(from, min(tuning.ClaimPiece, n))
	for at := 0; at < n; at += tuning.ClaimPiece {
		if next := at + tuning.ClaimPiece; next < n {
			ordered.Claim(unsafe.Add(from, next), min(tuning.ClaimPiece, n-next))
		}
		ordered.Get(dst[at:min(at+tuning.ClaimPiece, n)], unsafe.Add(from, at))
	}
}

// part r of n bytes among the ranks of the host, in whole cache lines.
func (c *staging) part(n, r int) (from, to int) {
	q := ((n+c.n-1)/c.n + 63) &^ 63
	return min(r*q, n), min((r+1)*q, n)
}
