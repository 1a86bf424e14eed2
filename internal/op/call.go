package op

import (
	"math"
	"unsafe"
)

// Head is what a call has without Go pointers. So C may read it, by its address in the call.
// Record.Count are elements: of the vector (AllReduce, Reduce, Broadcast), of one rank's block
// (AllGather, Gather, Scatter, ReduceScatter, AllToAll), of all ranks' blocks together (the kinds
// with one vector of counts), of the message (Send, Recv; SendRecv's received one).
type Head struct {
	Record
	DstAt, SrcAt uintptr // where the memory is, on the host or a device; 0 where this rank has none
	DstN, SrcN   int     // elements there
	To           int     // SendRecv's destination; Root is its source
	Factor       float64 // of an Op that scales
}

// Call is one call, on its way from package ccl to what carries it out. Check has found its
// arguments right.
type Call struct {
	Head
	Dst, Src []byte // the memory, if it is the host's; DstAt and SrcAt say where it begins
	DC, SC   []int  // counts in elements: of Dst by rank, of Src by rank (kinds that end in V)

	Elem int // bytes of an element; 0 for Barrier

	// How the CPU engine reduces, for the kinds that do.
	Fold, Stream func(dst, a, b unsafe.Pointer, n int) // Stream has streaming stores
	// Both reduces into two places; nil where there is none.
	Both func(dst, other, a, b unsafe.Pointer, n int)
	// All reduces all operands and rounds once; nil where Fold of one after another is no less
	// exact.
	All func(dst unsafe.Pointer, srcs []unsafe.Pointer, n int)
	// Scale ends the sum, if that needs an end.
	Scale func(p unsafe.Pointer, n, ranks int)
	// Weighs is set for averages of floats of 8 and 16 bits, and scaled sums of the latter: see SumAll.
	// Then, of n bytes, Share makes of the share of na operands at a, and that of nb at b, the share of
	// both, and Last makes of the share of all ranks' operands what the call promises.
	Weighs bool
	Share  func(to, a, b unsafe.Pointer, n int, na, nb int32)
	Last   func(p unsafe.Pointer, n, ranks int)
	Wide   *Wide // how the call is made between hosts in the place of Fold, or Share and Last; nil for most

	// What the CPU engine keeps.
	Own     uint32 // the call's hash alone; Hash becomes that of all calls so far
	Offsets []int  // of the blocks of DC, in bytes
	Inside  Kind   // the call that this one is made in, if any
	Queued  bool   // it is made on the goroutine of a HostStream
}

// Wide makes a call of elements of 8 or 16 bits with those of 32 bits, WideElem bytes.
type Wide struct {
	Fold func(dst, a, b unsafe.Pointer, n int)        // of 32 bits
	From func(dst, src unsafe.Pointer, n, ranks int)  // has n elements of 32 bits at dst for those at src
	To   func(dst, sums unsafe.Pointer, n, ranks int) // ends n sums, which it may change
}

// WideElem is the size of an element of Wide.
const WideElem = 4

// Address says where Dst and Src begin. Slices that a call holds are on the heap, which does not
// move.
func (c *Call) Address() {
	c.DstAt, c.SrcAt = uintptr(unsafe.Pointer(unsafe.SliceData(c.Dst))), uintptr(unsafe.Pointer(unsafe.SliceData(c.Src)))
}

// Ptr is the address of the first byte of b, nil if b has no memory.
func Ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// Forget lets go of the memory.
func (c *Call) Forget() { c.Dst, c.Src, c.DC, c.SC = nil, nil, nil, nil }

// Seal sets the call's hash: equal calls have equal hashes on all ranks.
func (c *Call) Seal() {
	h := Hash(c.Count, c.Kind, c.Type, min(c.Op, Scaled), c.Root)
	if c.Op.Scales() { // ranks may have made their factors in another order
		h = h.With(math.Float64bits(c.Factor))
	}
	if c.Kind != AllToAllV { // whose counts are each rank's own
		for _, n := range c.DC {
			h = h.With(uint64(n))
		}
	}
	c.Hash = h.Sum()
	c.Own = c.Hash
}

// Hash returns the hash of what all kinds of calls have.
func Hash(count uint64, k Kind, t Type, o Op, root int32) Mix {
	return NewMix().With(count).With(uint64(k) | uint64(t)<<8 | uint64(o)<<16 | uint64(uint32(root))<<32)
}

// Bytes is the length of the call's whole vector, the same on all of n ranks.
func (c *Call) Bytes(n int) int64 {
	b := int64(c.Count) * int64(c.Elem)
	switch {
	case c.Kind.Blocks():
		return b * int64(n)
	case c.Kind == AllToAllV: // whose counts only its own rank knows
		return 0
	}
	return b
}

// The blocks of a call that cuts a vector by ranks. Where counts differ, Offsets has where each
// begins, in bytes, and where the last ends.

// Block is where block r lies, in bytes.
func (c *Call) Block(r int) (from, to int) {
	if c.Offsets == nil {
		size := int(c.Count) * c.Elem
		return r * size, (r + 1) * size
	}
	return c.Offsets[r], c.Offsets[r+1]
}

// BlockLen is the length of block r, in bytes.
func (c *Call) BlockLen(r int) int {
	from, to := c.Block(r)
	return to - from
}

// Largest is the length of the largest block, in bytes.
func (c *Call) Largest() int {
	if c.Offsets == nil {
		return int(c.Count) * c.Elem
	}
	m := 0
	for r := range len(c.Offsets) - 1 {
		m = max(m, c.BlockLen(r))
	}
	return m
}

// Part is block r of v.
func (c *Call) Part(v []byte, r int) []byte {
	from, to := c.Block(r)
	return v[from:to]
}

// Piece is length bytes of block r of v, from byte at of the block on, or as many as there are.
func (c *Call) Piece(v []byte, r, at, length int) []byte {
	from, to := c.Block(r)
	return v[min(from+at, to):min(from+at+length, to)]
}

// A call that Weighs has no Scale: All, or Fold and Stream for the two operands of two ranks, end
// what they compute. Between hosts partial results are shares, which Share adds and Last ends, or Wide.

// SumsAll reports whether the operands of n ranks are added at once.
func (c *Call) SumsAll(n int) bool { return n > 2 && c.All != nil }

// SumAll adds all of srcs, each of n bytes, and forgets where they were.
func (c *Call) SumAll(to unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	c.All(to, srcs, n/c.Elem)
	if c.Scale != nil {
		c.Scale(to, n/c.Elem, len(srcs))
	}
	clear(srcs)
}
