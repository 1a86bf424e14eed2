package reduce

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// reduceOf is For(t, o) of two vectors, on the level in use.
func reduceOf[T any](t op.Type, o op.Op, a, b []T) []T {
	d := make([]T, len(a))
	For(t, o)(unsafe.Pointer(&d[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), len(a))
	s := make([]T, len(a))
	ForStream(t, o)(unsafe.Pointer(&s[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), len(a))
	if string(asBytes(s)) != string(asBytes(d)) {
		panic("For and ForStream differ")
	}
	return d
}

// checkBits compares the operators on bits with Go's own, on n elements.
func checkBits[T signed | unsigned](t *testing.T, typ op.Type, n int) {
	r := seeded(t)
	a, b := make([]T, n), make([]T, n)
	fill(r, typ, asBytes(a))
	fill(r, typ, asBytes(b))
	for o, want := range map[op.Op]func(x, y T) T{
		op.BAnd: func(x, y T) T { return x & y }, op.BOr: func(x, y T) T { return x | y }, op.BXor: func(x, y T) T { return x ^ y },
	} {
		for i, got := range reduceOf(typ, o, a, b) {
			require.Equal(t, want(a[i], b[i]), got, "%v %v: element %d of %d", typ, o, i, n)
		}
	}
}

func TestBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 7, 8, 9, 16, 100, 4099} {
			checkBits[int8](t, op.Int8, n)
			checkBits[uint8](t, op.Uint8, n)
			checkBits[int16](t, op.Int16, n)
			checkBits[uint16](t, op.Uint16, n)
			checkBits[int32](t, op.Int32, n)
			checkBits[uint32](t, op.Uint32, n)
			checkBits[int64](t, op.Int64, n)
			checkBits[uint64](t, op.Uint64, n)
		}
	})
}

// The truth tables of bool.
func TestBool(t *testing.T) {
	a, b := []bool{false, false, true, true}, []bool{false, true, false, true}
	and, or := []bool{false, false, false, true}, []bool{false, true, true, true}
	eachLevel(t, func(t *testing.T) {
		for o, want := range map[op.Op][]bool{op.Min: and, op.BAnd: and, op.Max: or, op.BOr: or, op.BXor: {false, true, true, false}} {
			require.Equal(t, want, reduceOf(op.Bool, o, a, b), "%v", o)
		}
	})
}

// Complex numbers are added by parts, and an average divides both parts.
func TestComplex(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 3, 8, 1001} {
			checkComplex[complex64](t, op.Complex64, n)
			checkComplex[complex128](t, op.Complex128, n)
		}
	})
}

func checkComplex[T complex64 | complex128](t *testing.T, typ op.Type, n int) {
	a, b, want := make([]T, n), make([]T, n), make([]T, n)
	for i := range a {
		a[i], b[i] = T(complex(float32(i), float32(-2*i))), T(complex(float32(3*i), 8))
		want[i] = a[i] + b[i]
	}
	for _, o := range []op.Op{op.Sum, op.Avg} {
		require.Equal(t, want, reduceOf(typ, o, a, b), "%v %v", typ, o)
	}
	if both := ForBoth(typ, op.Sum); both != nil {
		one, other := make([]T, n), make([]T, n)
		both(unsafe.Pointer(&one[0]), unsafe.Pointer(&other[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), n)
		require.Equal(t, [2][]T{want, want}, [2][]T{one, other})
	}
	for i := range want {
		want[i] *= 4
	}
	Scale(typ)(unsafe.Pointer(&want[0]), n, 4)
	for i := range want {
		require.Equal(t, a[i]+b[i], want[i], "%v: the mean of element %d", typ, i)
	}
}
