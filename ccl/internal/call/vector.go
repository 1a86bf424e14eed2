package call

import (
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Vector is what the parts of a schedule are parts of.
type Vector struct {
	Mem     []byte
	Offsets []int // where parts begin, and the end; nil: each has size bytes
	Size    int
	// Where stride is not 0, part p is the size bytes at p*stride + from.
	Stride, From int
}

// Even cuts mem into parts, in whole cache lines.
func Even(mem []byte, parts int) Vector {
	return Vector{Mem: mem, Size: max(((len(mem)+parts-1)/parts+63)&^63, 1)}
}

// At returns where part p begins, in bytes.
func (v *Vector) At(p int) int {
	if v.Offsets != nil {
		return v.Offsets[p]
	}
	return min(p*v.Size, len(v.Mem))
}

// Parts returns parts lo to hi-1.
func (v *Vector) Parts(lo, hi int) []byte {
	if v.Stride > 0 {
		return v.Mem[lo*v.Stride+v.From:][:v.Size]
	}
	return v.Mem[v.At(lo):v.At(hi)]
}

// Blocks is v, memory of c, cut by ranks.
func Blocks(c *Call, v []byte) Vector {
	return Vector{Mem: v, Offsets: c.Offsets, Size: int(c.Count) * c.Elem}
}

// Workspace is what a Comm's calls need beside the caller's memory, kept so that calls allocate
// nothing once everything has been used once.
type Workspace struct {
	beside  []byte
	Offsets []int // of the blocks of the call
	sendOff []int // of those that go, in AllToAllV
}

// Scratch is n bytes beside the caller's memory.
func (w *Workspace) Scratch(n int) []byte {
	if cap(w.beside) < n {
		w.beside = shm.Aligned(n)
	}
	return w.beside[:n]
}

// SetOffsets says where the blocks of k begin, if its parts have counts and all ranks the same.
func (w *Workspace) SetOffsets(k *Call) {
	k.Offsets = nil
	if k.DC != nil && k.Kind != AllToAllV {
		w.Offsets = OffsetsOf(w.Offsets, k.DC, k.Elem)
		k.Offsets = w.Offsets
	}
}

// BlocksV are the blocks of an AllToAllV, by rank. In place, the blocks to send are copied: their places
// are not those of the blocks to receive.
func (w *Workspace) BlocksV(k *Call, out, in *Vector) {
	w.sendOff = OffsetsOf(w.sendOff, k.SC, k.Elem)
	w.Offsets = OffsetsOf(w.Offsets, k.DC, k.Elem)
	src := k.Src
	if op.Ptr(k.Dst) == op.Ptr(k.Src) {
		src = w.Scratch(len(k.Src))
		reduce.Copy(op.Ptr(src), op.Ptr(k.Src), len(src)) // which can be preempted
	}
	out.Mem, out.Offsets = src, w.sendOff
	in.Mem, in.Offsets = k.Dst, w.Offsets
}
