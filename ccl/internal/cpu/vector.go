package cpu

import (
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/reduce"
)

// A vector is what the parts of a schedule are parts of.
type vector struct {
	mem     []byte
	offsets []int // where parts begin, and the end; nil: each has size bytes
	size    int
	// Where stride is not 0, part p is the size bytes at p*stride + from.
	stride, from int
}

// even cuts mem into parts, in whole cache lines.
func even(mem []byte, parts int) vector {
	return vector{mem: mem, size: max(((len(mem)+parts-1)/parts+63)&^63, 1)}
}

func (v *vector) at(p int) int {
	if v.offsets != nil {
		return v.offsets[p]
	}
	return min(p*v.size, len(v.mem))
}

func (v *vector) parts(lo, hi int) []byte {
	if v.stride > 0 {
		return v.mem[lo*v.stride+v.from:][:v.size]
	}
	return v.mem[v.at(lo):v.at(hi)]
}

// blocks is v cut by ranks.
func (c *Call) blocks(v []byte) vector {
	return vector{mem: v, offsets: c.offsets, size: int(c.Count) * c.Elem}
}

// workspace is what a Comm's calls need beside the caller's memory, kept so that calls allocate nothing once everything has
// been used once.
type workspace struct {
	beside  []byte
	offsets []int // of the blocks of the call
	sendOff []int // of those that go, in AllToAllV
}

// scratch is n bytes beside the caller's memory.
func (w *workspace) scratch(n int) []byte {
	if cap(w.beside) < n {
		w.beside = shm.Aligned(n)
	}
	return w.beside[:n]
}

// blocksV are the blocks of an AllToAllV, by rank. In place, those that go are copied: they do not lie where
// those that come do.
func (w *workspace) blocksV(k *Call, out, in *vector) {
	w.sendOff = offsetsOf(w.sendOff, k.SC, k.Elem)
	w.offsets = offsetsOf(w.offsets, k.DC, k.Elem)
	src := k.Src
	if ptr(k.Dst) == ptr(k.Src) {
		src = w.scratch(len(k.Src))
		reduce.Copy(ptr(src), ptr(k.Src), len(src)) // which can be preempted
	}
	out.mem, out.offsets = src, w.sendOff
	in.mem, in.offsets = k.Dst, w.offsets
}
