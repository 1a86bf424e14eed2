package call

import (
	"math"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/hash"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/reduce"
)

// Kind says which collective a call is.
type Kind = engine.Kind

// The kinds of calls.
const (
	AllReduce      = engine.AllReduce
	Reduce         = engine.Reduce
	ReduceScatter  = engine.ReduceScatter
	ReduceScatterV = engine.ReduceScatterV
	Broadcast      = engine.Broadcast
	AllGather      = engine.AllGather
	AllGatherV     = engine.AllGatherV
	Gather         = engine.Gather
	GatherV        = engine.GatherV
	Scatter        = engine.Scatter
	ScatterV       = engine.ScatterV
	AllToAll       = engine.AllToAll
	AllToAllV      = engine.AllToAllV
	Send           = engine.Send
	Recv           = engine.Recv
	SendRecv       = engine.SendRecv
	Barrier        = engine.Barrier
	Split          = engine.Split
	Group          = engine.GroupOfCalls
	Window         = engine.SymmetricWindow
)

// Scaled is the first of the operators that a Comm has for factors of its own: the sum is multiplied by Call.Factor.
const Scaled = 16

// Record describes one call: what ranks compare, and what the flight recorder
// keeps.
type Record struct {
	Seq, Count uint64
	Start, End int64  // coarse nanoseconds since the Comm was made
	Number     uint64 // among its rank's own calls, where Seq is its place in an order of several ranks
	Root       int32  // or peer; -1 if none
	Hash       uint32
	Kind       Kind
	Type, Op   uint8 // ccl.Type and ccl.Op
	State      uint8
	Times      float32 // what an Op of Scaled multiplies by, rounded, for people
}

// Call is one collective as the engine sees it. Its arguments have been checked.
type Call struct {
	Record
	Dst, Src []byte
	DC, SC   []int         // counts in elements: of Dst by rank, of Src by rank (V kinds)
	To       int           // SendRecv's destination; Root is its source
	Elem     int           // bytes of an element; 0 for Barrier
	Own      uint32        // its hash alone; Run makes Hash that of all calls so far
	Counted  bool          // it has DC
	Queued   bool          // it is made on the goroutine of a HostStream
	Fold     reduce.Func   // of Type and Op, for the kinds that reduce
	Stream   reduce.Func   // the same with streaming stores
	Both     reduce.Both   // into two places; nil where there is none
	All      reduce.SumAll // of all operands, rounded once; nil where Fold of one after another is no less exact
	Offsets  []int
	Place    uint64 // among the collectives of its Comm
	Inside   Kind   // the call that this one is made in, if any
	Scale    func(p unsafe.Pointer, n, ranks int)
	Factor   float64     // where Op is Scaled or more
	Weighs   bool        // it averages or scales 16-bit floats: see sum.go
	Half     reduce.Type // then: the type
	Weight   float32     // then, where Op is Scaled or more: Factor as Half holds it
}

// Seal sets the call's hash: equal calls have equal hashes on all ranks.
func (c *Call) Seal() {
	h := NewMix(c.Count, c.Kind, c.Type, min(c.Op, Scaled), c.Root)
	if c.Op >= Scaled { // ranks may have made their factors in another order
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

// NewMix returns the hash of what all kinds of calls have.
func NewMix(count uint64, k Kind, typ, op uint8, root int32) hash.Mix {
	return hash.New().With(count).With(uint64(k) | uint64(typ)<<8 | uint64(op)<<16 | uint64(uint32(root))<<32)
}

// The blocks of a call that cuts a vector by ranks. Where counts differ, offsets
// has where each begins, in bytes, and where the last ends.

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

// Piece is length bytes of block r of v, from byte at of the block on, or as many
// as there are.
func (c *Call) Piece(v []byte, r, at, length int) []byte {
	from, to := c.Block(r)
	return v[min(from+at, to):min(from+at+length, to)]
}

// Pieces is how many times length is needed to cover n; an empty call has one
// piece, too, so that its ranks meet.
func Pieces(n, length int) int {
	if n <= length {
		return 1
	}
	return (n + length - 1) / length
}

// OffsetsOf appends to buf where blocks of counts elements begin, and the end.
func OffsetsOf(buf []int, counts []int, elem int) []int {
	buf = append(buf[:0], 0)
	for _, n := range counts {
		buf = append(buf, buf[len(buf)-1]+n*elem)
	}
	return buf
}
