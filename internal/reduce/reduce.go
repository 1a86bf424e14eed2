// Package reduce has the arithmetic of the CPU engine: element-wise reductions,
// the division that ends an average, and copies.
//
// # Specification
//
// Generic is the specification, written in Go. A kernel for a CPU's vector
// instructions computes the same bits, with the one exception named below.
//
//   - Integers wrap around, as Go's operators do.
//   - Sum and Prod of float32 and float64 are IEEE 754 operations rounded to
//     nearest even; denormals are kept. That a result is a NaN is specified; its
//     sign and payload are not, since the instruction sets differ.
//   - Min and Max of floats are IEEE 754-2019's minimum and maximum: -0 is less
//     than +0, and NaN if either element is NaN. All bits are specified: the
//     result is the NaN of a, or else of b, made quiet.
//   - half and bfloat16 are converted to float32, which is exact, computed there,
//     and rounded to nearest even, once for each operation; denormals are kept.
//     SumAll adds any number of them and rounds once.
//   - The 8-bit floats are reduced as half and bfloat16 are, but what is beyond the
//     largest number, an infinity too, becomes that: E4M3 has no infinity. Min and Max
//     keep an infinity of E5M2.
//   - Avg is Sum, and a division by the number of ranks at the end: see Scale.
//     Floats of 16 and 8 bits are divided in float32, before they are rounded: see MeanAll.
//   - BAnd, BOr and BXor work on the bits of integers. A bool is a byte that is 0 or 1: Min and
//     BAnd are and, Max and BOr are or.
//   - Complex numbers are two floats: they have Sum and Avg, of each part.
//
// # Kernels
//
// The kernels are made by the program in gen, for AVX2, for AVX-512 and for NEON with
// and without FEAT_FP16 and FEAT_BF16, and chosen once, by what the CPU and the operating
// system support. The build tag noasm leaves them out, and so do other architectures.
package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

//go:generate go -C gen run .

// Func computes: for i := range n { dst[i] = a[i] op b[i] }
//
// dst may be a or b, but must not overlap them partly. No alignment is required.
type Func func(dst, a, b unsafe.Pointer, n int)

// For is the best kernel for this CPU. It is nil where op.Reduces is false. Avg has the kernel of Sum:
// Scale does the rest, once, at the end; for floats of 16 and 8 bits MeanAll does all of it.
func For(t op.Type, o op.Op) Func { return entry(&chosen.reduce, t, o) }

// ForStream is For, with stores that go past the caches where that is worth
// something: for results that are larger than the caches and not soon read.
func ForStream(t op.Type, o op.Op) Func { return entry(&chosen.stream, t, o) }

// entry is what a table has for t and o, nil where those are no type and operator.
func entry(table *[op.Types][op.Ops]Func, t op.Type, o op.Op) Func {
	if t >= op.Types || o >= op.Ops {
		return nil
	}
	return table[t][o]
}

// Both is a reduction into two places: for i := range n { dst[i], other[i] = a[i] op b[i], a[i] op b[i] }.
// Neither may overlap an operand. Up to 256 KiB it is one step, which cannot be preempted.
type Both func(dst, other, a, b unsafe.Pointer, n int)

// ForBoth is ForStream into two places. It is nil where two steps, by way of memory that stays in a
// cache, are no slower.
func ForBoth(t op.Type, o op.Op) Both {
	if t >= op.Types || o != op.Sum && o != op.Avg {
		return nil
	}
	return chosen.both[t]
}

// Generic is the specification of For: the same function in plain Go.
func Generic(t op.Type, o op.Op) Func { return entry(&generic.reduce, t, o) }

// Scale is the end of Avg: the function computes for i := range n { dst[i] /= ranks }.
//
// Floats are divided truly and rounded once; those of 16 and 8 bits in float32, then
// to nearest even. Integers are divided as Go does it: towards zero. ranks below 2
// change nothing. It is nil where For is.
func Scale(t op.Type) func(dst unsafe.Pointer, n int, ranks int) {
	if t >= op.Types {
		return nil
	}
	return chosen.scale[t]
}

// Copy copies n bytes. dst and src must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	for ; n > piece; n -= piece {
		move(dst, src, piece)
		dst, src = unsafe.Add(dst, piece), unsafe.Add(src, piece)
	}
	move(dst, src, n)
}

// Stream is Copy with stores that go past the caches, where the CPU has them.
func Stream(dst, src unsafe.Pointer, n int) { chosen.copy(dst, src, n) }

// Kernel is the name of what was chosen: "avx512", "avx2", "neon", "neon+fp16", "neon+fp16+bf16" or "generic".
func Kernel() string { return chosen.name }

// piece is how many bytes one uninterrupted step takes. Assembly, memmove's too,
// cannot be preempted, so a garbage collector's stop waits for all of it: 57 ms
// for a 256 MiB sum in one go, some 10 us for a piece.
const piece = 256 << 10

// move is not inlined so that its prologue lets a stop in between two pieces.
//
//go:noinline
func move(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
