//go:build (amd64 || arm64) && !noasm

package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// The functions below make what this package exports of assembly kernels: one call
// for up to a piece, more for more. step is how many bytes a kernel takes at a
// time; what is over goes to the specification. A kernel of step 0 takes all.

// assemble is a level of kernels and, where there are none, of the specification.
func assemble(name string, step int, kernels *[op.Types][op.Ops]Func) *level {
	l := &level{name: name, scale: generic.scale, copy: Copy, encode: generic.encode, decode: generic.decode,
		addDecoded: generic.addDecoded}
	for t := range kernels {
		kernels[t][op.Avg] = kernels[t][op.Sum]
		for o, k := range kernels[t] {
			if k != nil {
				l.reduce[t][o] = pieces(step, op.Type(t), op.Op(o), k)
			}
		}
	}
	l.stream = l.reduce
	return l
}

// wholeSteps has the bits of a number of elements that are a kernel's.
func wholeSteps(step, size int) int { return -max(step/size, 1) }

// pieces makes a Func of a kernel.
func pieces(step int, t op.Type, o op.Op, k Func) Func {
	size, rest := t.Size(), Generic(t, o)
	most, whole := piece/size, wholeSteps(step, size)
	return func(dst, a, b unsafe.Pointer, n int) {
		for n > most {
			call(k, dst, a, b, most)
			dst, a, b, n = unsafe.Add(dst, piece), unsafe.Add(a, piece), unsafe.Add(b, piece), n-most
		}
		m := n & whole
		if m > 0 {
			k(dst, a, b, m)
		}
		if m < n {
			off := m * size
			rest(unsafe.Add(dst, off), unsafe.Add(a, off), unsafe.Add(b, off), n-m)
		}
	}
}

// call is not inlined so that its prologue lets a garbage collector's stop in: in
// assembly, and so in a loop of nothing but calls to it, there is no such place.
//
//go:noinline
func call(k Func, dst, a, b unsafe.Pointer, n int) { k(dst, a, b, n) }

const (
	line       = 64   // bytes of a cache line, which non-temporal stores fill
	streamFrom = 4096 // bytes; with fewer, heads and tails are most of it
)

// streamSum sets the streaming sums of t to k and to two, for one place and for two, which need
// these aligned to a line.
func (l *level) streamSum(step int, t op.Type, k Func, two Both) {
	size, plain, aligned := t.Size(), l.reduce[t][op.Sum], pieces(step, t, op.Sum, k)
	f := func(dst, a, b unsafe.Pointer, n int) {
		head := int(-uintptr(dst) % line)
		if head%size != 0 || n < streamFrom/size {
			plain(dst, a, b, n)
			return
		}
		if head > 0 {
			plain(dst, a, b, head/size)
		}
		aligned(unsafe.Add(dst, head), unsafe.Add(a, head), unsafe.Add(b, head), n-head/size)
	}
	l.stream[t][op.Sum], l.stream[t][op.Avg] = f, f

	whole := wholeSteps(step, size)
	apart := func(dst, other, a, b unsafe.Pointer, n int) {
		plain(dst, a, b, n)
		Copy(other, dst, n*size)
	}
	l.both[t] = func(dst, other, a, b unsafe.Pointer, n int) {
		head := int(-uintptr(dst) % line)
		if head%size != 0 || uintptr(dst)%line != uintptr(other)%line || n < streamFrom/size || n > piece/size {
			apart(dst, other, a, b, n)
			return
		}
		if head > 0 {
			apart(dst, other, a, b, head/size)
		}
		m := (n - head/size) & whole
		two(unsafe.Add(dst, head), unsafe.Add(other, head), unsafe.Add(a, head), unsafe.Add(b, head), m)
		if off := head + m*size; off < n*size {
			apart(unsafe.Add(dst, off), unsafe.Add(other, off), unsafe.Add(a, off), unsafe.Add(b, off), n-off/size)
		}
	}
}

// divide makes a Scale of a kernel.
func divide[F float](step int, t op.Type, k func(dst unsafe.Pointer, n int, by F)) func(unsafe.Pointer, int, int) {
	size, rest := t.Size(), generic.scale[t]
	most, whole := piece/size, wholeSteps(step, size)
	return func(dst unsafe.Pointer, n int, ranks int) {
		if ranks < 2 {
			return
		}
		by := F(ranks)
		for n > most {
			callDivide(k, dst, most, by)
			dst, n = unsafe.Add(dst, piece), n-most
		}
		m := n & whole
		if m > 0 {
			k(dst, m, by)
		}
		if m < n {
			rest(unsafe.Add(dst, m*size), n-m, ranks)
		}
	}
}

// callDivide is call for divide.
//
//go:noinline
func callDivide[F float](k func(unsafe.Pointer, int, F), dst unsafe.Pointer, n int, by F) {
	k(dst, n, by)
}

// weighFast is weigh by the kernels of an instruction set, as far as they go, and returns how far
// that is. They are called by name, since what is passed to a function value escapes: weights and
// operands lie on the caller's stack. As in sumPieces, one call reads no more than a piece, or two
// lines of each vector.
func weighFast(isa isa, t op.Type, dst unsafe.Pointer, srcs []unsafe.Pointer, w *weights, n int) (done int) {
	n = weighable(isa, w, n)
	most := max(piece/2/len(srcs)&^(line-1), line)
	for first := 0; first < n; first += most {
		weighPiece(isa, t, dst, srcs, w, first, min(most, n-first))
	}
	return n
}

// streamCopy makes a Stream of a kernel.
func streamCopy(step int, k func(dst, src unsafe.Pointer, n int)) func(dst, src unsafe.Pointer, n int) {
	whole := -max(step, 1)
	return func(dst, src unsafe.Pointer, n int) {
		if n < streamFrom {
			move(dst, src, n)
			return
		}
		if head := int(-uintptr(dst) % line); head > 0 {
			move(dst, src, head)
			dst, src, n = unsafe.Add(dst, head), unsafe.Add(src, head), n-head
		}
		for n > piece {
			callCopy(k, dst, src, piece)
			dst, src, n = unsafe.Add(dst, piece), unsafe.Add(src, piece), n-piece
		}
		m := n & whole
		k(dst, src, m)
		if m < n {
			move(unsafe.Add(dst, m), unsafe.Add(src, m), n-m)
		}
	}
}

// callCopy is call for streamCopy.
//
//go:noinline
func callCopy(k func(dst, src unsafe.Pointer, n int), dst, src unsafe.Pointer, n int) {
	k(dst, src, n)
}
