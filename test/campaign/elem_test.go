package campaign

import (
	"math"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// An elem is a type of elements: its arithmetic, in plain Go.
type elem struct {
	name string
	size int
	ops  []ccl.Op // that the CPU engine has for it
	// scales says that it has operators of Comm.Scaled.
	scales  bool
	prepare func(s *scene, k call) prepared
}

// arithmetic is that of T. Numbers are small enough for every result to be exact, whatever the order and the grouping; but
// integers wrap, so any bits will do.
type arithmetic[T ccl.Element] struct {
	number func(v int) T                 // a small number that is not negative
	fold   func(op ccl.Op, a, b T) T     // for all operators but Avg
	scaled func(sum T, factor float64) T // nil: there is none
	tiny   func(v int) T                 // v times the least subnormal; nil: there is none
	wraps  bool                          // all bits are numbers, and arithmetic wraps
	round  func(sum float32) T           // of numbers whose sums are exact in float32, and rounded once; nil: exact as they are
	exact  func(v T) float32             // its inverse
}

func elemOf[T ccl.Element](name string, a arithmetic[T], ops ...ccl.Op) elem {
	var zero T
	return elem{name, int(unsafe.Sizeof(zero)), ops, a.scaled != nil, func(s *scene, k call) prepared { return prepare(s, k, a) }}
}

var (
	numeric = []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg}
	bits    = []ccl.Op{ccl.BAnd, ccl.BOr, ccl.BXor}
)

type integer interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

func integers[T integer](name string) elem {
	return elemOf(name, arithmetic[T]{
		number: func(v int) T { return T(v) },
		wraps:  true,
		fold: func(op ccl.Op, a, b T) T {
			switch op {
			case ccl.BAnd:
				return a & b
			case ccl.BOr:
				return a | b
			case ccl.BXor:
				return a ^ b
			}
			return fold(op, a, b)
		},
	}, append(bits, numeric...)...)
}

func fold[T integer | float32 | float64](op ccl.Op, a, b T) T {
	switch op {
	case ccl.Prod:
		return a * b
	case ccl.Min:
		return min(a, b)
	case ccl.Max:
		return max(a, b)
	}
	return a + b
}

func halves[T ccl.Element](name string, to func(float32) T, from func(T) float32, least float64) elem {
	return elemOf(name, arithmetic[T]{
		number: func(v int) T { return to(float32(v)) },
		fold:   func(op ccl.Op, a, b T) T { return to(fold(op, from(a), from(b))) },
		scaled: func(sum T, factor float64) T { return to(from(sum) * float32(factor)) },
		tiny:   func(v int) T { return to(float32(float64(v) * least)) },
	}, numeric...)
}

func eighths[T ccl.Element](name string, to func(float32) T, from func(T) float32) elem {
	return elemOf(name, arithmetic[T]{
		number: func(v int) T { return to(float32(v)) },
		fold:   func(op ccl.Op, a, b T) T { return to(fold(op, from(a), from(b))) },
		round:  to,
		exact:  from,
	}, numeric...)
}

var elems = []elem{
	integers[int8]("int8"), integers[uint8]("uint8"), integers[int16]("int16"), integers[uint16]("uint16"),
	integers[int32]("int32"), integers[uint32]("uint32"), integers[int64]("int64"), integers[uint64]("uint64"),
	halves("half", ccl.ToFloat16, ccl.Float16.Float32, 0x1p-24),
	halves("bfloat16", ccl.ToBFloat16, ccl.BFloat16.Float32, 0x1p-133),
	elemOf("float", arithmetic[float32]{
		number: func(v int) float32 { return float32(v) },
		fold:   fold[float32],
		scaled: func(sum float32, factor float64) float32 { return sum * float32(factor) },
		tiny:   func(v int) float32 { return float32(v) * math.SmallestNonzeroFloat32 },
	}, numeric...),
	elemOf("double", arithmetic[float64]{
		number: func(v int) float64 { return float64(v) },
		fold:   fold[float64],
		scaled: func(sum float64, factor float64) float64 { return sum * factor },
		tiny:   func(v int) float64 { return float64(v) * math.SmallestNonzeroFloat64 },
	}, numeric...),
	eighths("f8e4m3", ccl.ToFloat8E4M3, ccl.Float8E4M3.Float32),
	eighths("f8e5m2", ccl.ToFloat8E5M2, ccl.Float8E5M2.Float32),
	elemOf("bool", arithmetic[bool]{
		number: func(v int) bool { return v%2 == 1 },
		fold: func(op ccl.Op, a, b bool) bool {
			switch op {
			case ccl.Min, ccl.BAnd:
				return a && b
			case ccl.BXor:
				return a != b
			}
			return a || b
		},
	}, ccl.Min, ccl.Max, ccl.BAnd, ccl.BOr, ccl.BXor),
	elemOf("complex64", arithmetic[complex64]{
		number: func(v int) complex64 { return complex(float32(v), float32(2*v)) },
		fold:   func(_ ccl.Op, a, b complex64) complex64 { return a + b },
	}, ccl.Sum, ccl.Avg),
	elemOf("complex128", arithmetic[complex128]{
		number: func(v int) complex128 { return complex(float64(v), float64(2*v)) },
		fold:   func(_ ccl.Op, a, b complex128) complex128 { return a + b },
	}, ccl.Sum, ccl.Avg),
}

// mix spreads what it is given over 64 bits.
func mix(x ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, v := range x {
		h = (h ^ v) * 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	return h
}

// moved is element i of what rank r gives to a call that only moves: any bits, NaNs with their payloads too. A bool is 0 or 1.
func moved[T ccl.Element](salt uint64, r, i int) (x T) {
	h := mix(salt, uint64(r), uint64(i))
	switch p := any(&x).(type) {
	case *bool:
		*p = h>>40&1 == 1
		return x
	case *complex128:
		*p = complex(math.Float64frombits(h), math.Float64frombits(mix(h)))
		return x
	}
	return *(*T)(unsafe.Pointer(&h)) // at most 8 bytes
}

// given is element i of what rank r of n gives to a reduction.
func (a arithmetic[T]) given(k call, n, r, i int) T {
	v := int(mix(k.salt, uint64(r), uint64(i)) >> 33)
	switch {
	case k.tiny:
		return a.tiny(v % 11)
	case k.op == ccl.Avg:
		return a.number(n * (v % 2))
	case a.wraps:
		return moved[T](k.salt, r, i)
	case k.op == ccl.Prod:
		// At most three ranks have a 2.
		if (r+i)%3 == 0 && r < 9 {
			return a.number(2)
		}
		return a.number(1)
	}
	return a.number(v % 11)
}

// folded is element i of the reduction over n ranks.
func (a arithmetic[T]) folded(k call, n, i int) T {
	if a.round != nil && (k.op == ccl.Sum || k.op == ccl.Avg) {
		sum := float32(0)
		for r := range n {
			sum += a.exact(a.given(k, n, r, i))
		}
		if k.op == ccl.Avg {
			sum /= float32(n)
		}
		return a.round(sum)
	}
	if k.op == ccl.Avg {
		sum := 0
		for r := range n {
			sum += int(mix(k.salt, uint64(r), uint64(i))>>33) % 2
		}
		return a.number(sum)
	}
	x := a.given(k, n, 0, i)
	for r := 1; r < n; r++ {
		x = a.fold(k.op, x, a.given(k, n, r, i))
	}
	if k.factor != 0 {
		x = a.scaled(x, k.factor)
	}
	return x
}
