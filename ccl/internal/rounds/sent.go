package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// What one rank alone sends, in a call with a root, goes one way: the sender runs ahead of the
// others, across calls, by all slots. If it is not small, it lies in a ring of the sender's, which
// has room for more of the largest pieces than may be under way. Such a ring is larger than L2
// where that helps (tuning.Layout).

// rings are where the pieces that each rank sends alone lie.
type rings struct {
	mem  [][]byte // by rank, as far as it is mapped
	next []int    // where the next piece of each goes: all ranks know
}

// inRing reports whether n bytes of a round that one rank alone sends lie in its ring.
func (c *staging) inRing(n int) bool {
	return n > tuning.SmallPayload && c.local.Layout.SentRing(c.n) > 0
}

// piece is where the next n bytes lie that rank r sends alone. All ranks ask for each, in the same order.
func (c *staging) piece(r, n int) (unsafe.Pointer, *call.Fault) {
	mem, f := c.ringOf(r)
	if f != nil {
		return nil, f
	}
	from := c.sent.begins(r, n, len(mem))
	step := (n + 63) &^ 63
	if c.local.Layout.Ring == 0 { // L2 holds all of it: small pieces, apart, take fewer of its lines
		step = tuning.StreamPiece
	}
	c.sent.next[r] = from + step
	return unsafe.Pointer(&mem[from]), nil
}

// begins is where in the ring of rank r, of so many bytes, the next piece begins, of n bytes: none
// goes on behind the end.
func (g *rings) begins(r, n, bytes int) int {
	if g.next[r]+n > bytes {
		return 0
	}
	return g.next[r]
}

// ringOf is the ring of rank r. The rank that needs it first makes it.
func (c *staging) ringOf(r int) ([]byte, *call.Fault) {
	g := &c.sent
	if g.mem != nil && g.mem[r] != nil {
		return g.mem[r], nil
	}
	if g.mem == nil {
		g.mem, g.next = make([][]byte, c.n), make([]int, c.n)
	}
	var f *call.Fault
	g.mem[r], f = c.memory(c.local.Sent(r), c.local.Layout.SentRing(c.n))
	return g.mem[r], f
}

// roomAlone is room of a rank that sends alone.
func (c *staging) roomAlone(ctx context.Context, k *call.Call, round uint32, n int) (unsafe.Pointer, *call.Fault) {
	if c.inRing(n) {
		return c.piece(c.me, n)
	}
	return c.room(ctx, k, round, n)
}

// fetchAlone is fetch of what rank r sends alone.
func (c *staging) fetchAlone(ctx context.Context, k *call.Call, r int, round uint32,
	n int) (unsafe.Pointer, *call.Fault) {
	if !c.inRing(n) {
		return c.fetch(ctx, k, r, round, n)
	}
	if f := c.slots.await(ctx, k, r, round); f != nil {
		return nil, f
	}
	return c.piece(r, n)
}

// layoutSent is layout of a call in which one of more than two ranks sends alone: it runs further
// ahead of the others in a ring than in staging memory.
func (c *staging) layoutSent(block, blocks int) (length, inSlot int) {
	switch room := tuning.SentTo(c.n); {
	case block*blocks <= room:
		return block, block * blocks
	case block*blocks <= c.local.Layout.SentMost(c.n):
		return inPieces(block, blocks, room)
	}
	return c.layout(block, blocks)
}

// layoutReduced is layout of a Reduce of n bytes: of ranks that outnumber their cores, the root alone reduces.
func (c *staging) layoutReduced(n int) (length, inSlot int) {
	if c.local.Crowded && c.n <= 8 && n > c.local.Inline && n <= tuning.ReduceAtRootTo(c.n) {
		return inPieces(n, 1, tuning.SentTo(c.n))
	}
	return c.layout(n, 1)
}

// inPieces cuts blocks into pieces, of at most room bytes each, as equal as can be.
func inPieces(block, blocks, room int) (length, inSlot int) {
	length = (room / blocks) &^ 63
	pieces := call.Pieces(block, length)
	length = ((block+pieces-1)/pieces + 63) &^ 63
	return length, length * blocks
}
