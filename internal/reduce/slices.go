package reduce

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// The arithmetic on slices, for Go code that has them. A slice of a 16-bit float is one of any type whose underlying
// type is uint16; which float it holds is what t says. Slices that must have the same length, but do not, panic.

// Add computes: for i := range src { dst[i] += src[i] }, as For(t, Sum) does. dst may be src.
func Add[T any](t op.Type, dst, src []T) {
	sameLength(len(dst), len(src))
	var z T
	add := For(t, op.Sum)
	if add == nil || int(unsafe.Sizeof(z)) != t.Size() {
		panic(fmt.Sprintf("reduce: Add of %v on %T", t, z))
	}
	d := unsafe.Pointer(unsafe.SliceData(dst))
	add(d, d, unsafe.Pointer(unsafe.SliceData(src)), len(dst))
}

// lanes is how many sums SumSquares forms at once: as many as keep a core's adders busy.
const lanes = 8

// SumSquares is the sum of the squares of x, in float64. The result is the same on every machine: the square i goes to
// sum i%8, in order, and the eight are added as ((0+1)+(2+3)) + ((4+5)+(6+7)).
func SumSquares[F ~float32 | ~float64](x []F) float64 {
	var s [lanes]float64
	for ; len(x) >= lanes; x = x[lanes:] {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		// Each product is converted, so that no compiler fuses it with the addition.
		s[0] += float64(a * a)
		s[1] += float64(b * b)
		s[2] += float64(c * c)
		s[3] += float64(d * d)
		a, b, c, d = float64(x[4]), float64(x[5]), float64(x[6]), float64(x[7])
		s[4] += float64(a * a)
		s[5] += float64(b * b)
		s[6] += float64(c * c)
		s[7] += float64(d * d)
	}
	for i := range x {
		a := float64(x[i])
		s[i] += float64(a * a)
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

func sameLength(dst, src int) {
	if dst != src {
		panic(fmt.Sprintf("reduce: dst has %d elements, src %d", dst, src))
	}
}
