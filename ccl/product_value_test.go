package ccl_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/calltest"
)

// element is one type of elements: how the tests make values of it, and what they
// think of reducing it, which owes nothing to the engine.
type element interface {
	Type() ccl.Type
	// play makes the call s as this rank and checks all of this rank's memory.
	play(ctx context.Context, c *ccl.Comm, s shape) error
	// part is the call s of a Group: what issues it, and what checks this rank's memory when it is done.
	part(c *ccl.Comm, s shape) (issue func(g ccl.Queue), check func() error)
	// mutants are wrong results of s on rank, by what is wrong with them, and what the
	// check says of each.
	mutants(s shape, n, rank int) map[string]error
}

// elements are all types.
var elements = []element{
	integer[int8](), integer[uint8](), integer[int16](), integer[uint16](),
	integer[int32](), integer[uint32](), integer[int64](), integer[uint64](),
	float(11, -24, 0, func(x float64) ccl.Float16 { return ccl.ToFloat16(float32(x)) }, func(x ccl.Float16) float64 { return float64(x.Float32()) }),
	float(8, -133, 0, func(x float64) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) }, func(x ccl.BFloat16) float64 { return float64(x.Float32()) }),
	float(24, -149, 0, func(x float64) float32 { return float32(x) }, func(x float32) float64 { return float64(x) }),
	float(53, -1074, 0, func(x float64) float64 { return x }, func(x float64) float64 { return x }),
	float(4, -9, 448, encE4M3, decE4M3),
	float(3, -16, 57344, encE5M2, decE5M2),
}

// named types serve as their underlying ones.
type (
	celsius float32
	counter int
)

var namedElements = []element{
	integer[int](), integer[uint](), integer[counter](),
	float(24, -149, 0, func(x float64) celsius { return celsius(x) }, func(x celsius) float64 { return float64(x) }),
}

// typed is an element of type T.
type typed[T ccl.Number] struct {
	value  func(op ccl.Op, h uint64) T   // one that op reduces exactly, made of random bits
	reduce func(op ccl.Op, in [][]T) []T // the vectors of all ranks
}

func (e typed[T]) Type() ccl.Type { return ccl.TypeOf[T]() }

// raw is a T with the lowest bits of h.
func raw[T ccl.Number](h uint64) T { return *(*T)(unsafe.Pointer(&h)) }

type goInteger interface {
	~int8 | uint8 | ~int16 | uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint
}

// integer has values of all bits: sums and products wrap around.
func integer[T goInteger]() typed[T] {
	return typed[T]{
		value: func(op ccl.Op, h uint64) T {
			if op == ccl.Prod {
				h |= 1 // a product of odd numbers forgets none of them
			}
			return T(h)
		},
		reduce: func(op ccl.Op, in [][]T) []T {
			y := slices.Clone(in[0])
			for _, x := range in[1:] {
				switch op {
				case ccl.Sum, ccl.Avg:
					for i := range y {
						y[i] += x[i]
					}
				case ccl.Prod:
					for i := range y {
						y[i] *= x[i]
					}
				case ccl.Min:
					for i := range y {
						y[i] = min(y[i], x[i])
					}
				case ccl.Max:
					for i := range y {
						y[i] = max(y[i], x[i])
					}
				}
			}
			if op == ccl.Avg {
				for i := range y {
					y[i] = quotient(y[i], len(in))
				}
			}
			return y
		},
	}
}

// quotient is x/n towards zero, where n need not be a T.
func quotient[T goInteger](x T, n int) T {
	if x < 0 {
		return -T(uint64(-int64(x)) / uint64(n))
	}
	return T(uint64(x) / uint64(n))
}

// float has values whose sums and products are exact: small integers, and powers of
// two. digits is the precision of T, tiny the exponent of its least positive number.
// Where there is a most, an 8-bit float's largest number, values are any up to that:
// their sums are rounded once, and those beyond become that.
func float[T ccl.Number](digits, tiny int, most float64, enc func(float64) T, dec func(T) float64) typed[T] {
	round := func(x float64) float64 {
		if x == 0 {
			return x
		}
		_, exp := math.Frexp(x)
		ulp := math.Ldexp(1, max(exp-digits, tiny))
		return math.RoundToEven(x/ulp) * ulp
	}
	return typed[T]{
		value: func(op ccl.Op, h uint64) T {
			if op == ccl.Prod {
				return enc(math.Ldexp(1-2*float64(h>>8&1), int(h%3)-1))
			}
			if most > 0 {
				return enc(float64(h%uint64(2*most+1)) - most)
			}
			return enc(float64(h%33) - 16)
		},
		reduce: func(op ccl.Op, in [][]T) []T {
			y := make([]float64, len(in[0]))
			for i, v := range in[0] {
				y[i] = dec(v)
			}
			for _, x := range in[1:] {
				switch op {
				case ccl.Sum, ccl.Avg:
					for i, v := range x {
						y[i] += dec(v)
					}
				case ccl.Prod:
					for i, v := range x {
						y[i] *= dec(v)
					}
				case ccl.Min:
					for i, v := range x {
						y[i] = min(y[i], dec(v))
					}
				case ccl.Max:
					for i, v := range x {
						y[i] = max(y[i], dec(v))
					}
				}
			}
			z := make([]T, len(y))
			for i, v := range y {
				if op == ccl.Avg {
					v /= float64(len(in))
				}
				if v = round(v); most > 0 {
					v = max(min(v, most), -most)
				}
				z[i] = enc(v)
			}
			return z
		},
	}
}

// input is count elements, from at on, of what a rank puts into call s.
func (e typed[T]) input(s *shape, rank, at, count int) []T {
	if s.standIn != nil {
		rank = s.standIn[rank]
	}
	v := make([]T, count)
	key := s.number<<40 ^ uint64(rank)<<32
	if s.reduces() {
		for i := range v {
			v[i] = e.value(s.op, mix(key^uint64(at+i)))
		}
		return v
	}
	for i := range v {
		v[i] = raw[T](mix(key ^ uint64(at+i)))
	}
	return v
}

// mix makes random bits of a number (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// want is what dst of rank holds after call s; nil if it is left alone.
func (e typed[T]) want(s *shape, n, rank int) []T {
	moved := func(from, at, count int) []T { return e.input(s, from, at, count) }
	return calltest.Want(s.call(), n, rank, moved, func(at, count int) []T {
		in := make([][]T, n)
		for r := range in {
			in[r] = e.input(s, r, at, count)
		}
		return e.reduce(s.op, in)
	})
}

// memory is what one rank's call works on, and what it is to look like afterwards.
type memory[T ccl.Number] struct {
	all, want []T // src, dst, and guards around them
	dst, src  []T
}

// guard is how many elements around a buffer must stay as they are.
const guard = 16

// memory makes the memory of rank for s.
func (e typed[T]) memory(s *shape, n, rank int) memory[T] {
	src, dst, part := s.lengths(n, rank)
	want := e.want(s, n, rank)
	first := guard + int(s.number%5) // alignment is that of elements
	var m memory[T]
	switch {
	case !s.inPlace:
		m.all = make([]T, first+src+guard+dst+guard)
		m.src, m.dst = m.all[first:][:src], m.all[first+src+guard:][:dst]
	case src > dst:
		m.all = make([]T, first+src+guard)
		m.src = m.all[first:][:src]
		m.dst = m.src[part:][:dst]
	default:
		m.all = make([]T, first+dst+guard)
		m.dst = m.all[first:][:dst]
		m.src = m.dst[part:][:src]
	}
	for i, b := 0, bytesOf(m.all); i < len(b); i++ {
		b[i] = byte(i * 151 >> 3)
	}
	dirty := bytesOf(m.dst)
	for i, x := range bytesOf(want) { // what is not written shows
		dirty[i] = x ^ 0xa5
	}
	if s.kind != ccl.KindBroadcast || rank == s.root {
		copy(m.src, e.input(s, rank, 0, src))
	}
	m.want = append([]T(nil), m.all...)
	if want != nil {
		copy(m.want[offsetIn(m.all, m.dst):], want)
	}
	return m
}

// offsetIn is where part begins in all.
func offsetIn[T any](all, part []T) int { return cap(all) - cap(part) }

func (m *memory[T]) check() error { return differences(m.all, m.want) }

// differences says where got is not want, bit by bit.
func differences[T ccl.Number](got, want []T) error {
	if bytes.Equal(bytesOf(got), bytesOf(want)) {
		return nil
	}
	wrong, first := 0, -1
	for i := range got {
		if !bytes.Equal(bytesOf(got[i:i+1]), bytesOf(want[i:i+1])) {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Errorf("%d of %d elements of memory are wrong, the first at %d: %v (%x) is not %v (%x)", wrong, len(got), first,
		got[first], bytesOf(got[first:first+1]), want[first], bytesOf(want[first:first+1]))
}

func bytesOf[T any](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

func (e typed[T]) play(ctx context.Context, c *ccl.Comm, s shape) error {
	m := e.memory(&s, c.Size(), c.Rank())
	if err := perform(ctx, c, &s, m.dst, m.src); err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%v of %s on %v: %w", s, e.Type(), c, err)
	}
	return nil
}

func (e typed[T]) part(c *ccl.Comm, s shape) (issue func(g ccl.Queue), check func() error) {
	m := e.memory(&s, c.Size(), c.Rank())
	if s.kind == ccl.KindBroadcast { // has one buffer
		copy(m.dst, m.src)
	}
	return func(g ccl.Queue) { s.queue(c, g, ccl.BufOf(m.dst), ccl.BufOf(m.src)) }, m.check
}
