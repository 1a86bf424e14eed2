package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// reduced are the operations with kernels of their own; Avg is Sum.
var reduced = []op.Op{op.Sum, op.Prod, op.Min, op.Max}

// eachKind calls f for every type that has all operations of reduced.
func eachKind(f func(t op.Type)) {
	for t := range op.Types {
		if Generic(t, op.Sum) != nil && Generic(t, op.Prod) != nil {
			f(t)
		}
	}
}

// special are the bit patterns of each size where arithmetic has its corners, as
// integers and as floats: extremes, zeros, denormals, infinities, both sorts of NaN.
var special = map[int][]uint64{
	1: {0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, 0x7b, 0x7c, 0x7d, 0x7e, 0xfb, 0xfc, 0x08, 0x04, 0x07, 0x03},
	2: {
		0, 0x8000, 1, 0x8001, 0x7fff, 0xffff, 2, 0xfffe, // and both sorts' smallest and largest NaN
		0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfc01, 0x7e00, 0xfe12, // half
		0x007f, 0x807f, 0x0080, 0x8080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fc0, 0xffd2, // bfloat16
	},
	4: {
		0, 0x80000000, 1, 0x80000001, 0x7fffffff, 0xffffffff, 2, 0xfffffffe,
		0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
		0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fc00000, 0xffc12345,
	},
	8: {
		0, 1 << 63, 1, 1<<63 | 1, 1<<63 - 1, 1<<64 - 1, 2, 1<<64 - 2, 1<<32 - 1, 1 << 32,
		0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000,
		0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0xfff0000000000001,
		0x7ff8000000000000, 0xfff8123456789abc,
	},
}

// fill gives b values of t: corner cases, small integers, and any bits. They repeat
// after a prime number of elements.
func fill(r *rand.Rand, t op.Type, b []byte) {
	size := t.Size()
	if period := 4093 * size; len(b) > period {
		defer func(whole []byte) {
			for n := period; n < len(whole); n *= 2 {
				copy(whole[n:], whole[:n])
			}
		}(b)
		b = b[:period]
	}
	for i := 0; i+size <= len(b); i += size {
		x := r.Uint64()
		switch s := special[size]; x % 4 {
		case 0:
			x = s[r.IntN(len(s))]
		case 1:
			x = uint64(int64(x) >> 60)
		}
		put(b[i:], size, x)
	}
}

func put(b []byte, size int, x uint64) {
	var w [8]byte
	binary.NativeEndian.PutUint64(w[:], x)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(b[:size], w[:size])
	} else {
		copy(b[:size], w[8-size:])
	}
}

func get(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	default:
		return binary.NativeEndian.Uint64(b)
	}
}

// infinity has the bits of the type's infinity, or the largest number of E4M3, which has none: what is
// above it is a NaN. It is 0 for integers.
func infinity(t op.Type) uint64 {
	switch t {
	case op.Float16:
		return 0x7c00
	case op.BFloat16:
		return 0x7f80
	case op.Float32:
		return 0x7f800000
	case op.Float64:
		return 0x7ff0000000000000
	case op.Float8E4M3:
		return 0x7e
	case op.Float8E5M2:
		return 0x7c
	default:
		return 0
	}
}

// oneNaN makes all NaNs of b the same, for the operations that do not specify them.
func oneNaN(t op.Type, b []byte) {
	inf, size := infinity(t), t.Size()
	if inf == 0 {
		return
	}
	for i := 0; i < len(b); i += size {
		if get(b[i:], size)&^(1<<(8*size-1)) > inf {
			put(b[i:], size, inf+1)
		}
	}
}

// equal compares what a kernel made of n elements with what is specified.
func equal(t op.Type, o op.Op, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if o == op.Sum || o == op.Prod {
		oneNaN(t, got)
		oneNaN(t, want)
	}
	size := t.Size()
	for i := 0; i < len(got); i += size {
		if g, w := get(got[i:], size), get(want[i:], size); g != w {
			return fmt.Errorf("element %d of %d: %#x, want %#x", i/size, len(got)/size, g, w)
		}
	}
	return nil
}

// guard is how much memory is watched before and behind each vector.
const guard = 64

// span is memory for n bytes at an offset to a cache line, with guards around.
type span struct {
	all  []byte
	data []byte
}

func newSpan(offset, n int) span {
	b := make([]byte, n+3*guard)
	start := guard + (offset-int(uintptr(unsafe.Pointer(&b[0]))%64)+64)%64
	v := span{all: b[start-guard : start+n+guard]}
	v.data = v.all[guard : guard+n : guard+n]
	for i := range v.all {
		v.all[i] = 0xa5
	}
	return v
}

// at is where the data starts, also if there is none.
func (v span) at() unsafe.Pointer { return unsafe.Pointer(&v.all[guard]) }

// untouched reports an error if a guard has changed.
func (v span) untouched() error {
	for i, x := range v.all {
		if x != 0xa5 && (i < guard || i >= len(v.all)-guard) {
			return fmt.Errorf("byte %d of %d is written", i-guard, len(v.data))
		}
	}
	return nil
}

// alias is which of dst, a and b are the same memory.
type alias int

const (
	distinct alias = iota
	dstIsA
	dstIsB
	aIsB
	allSame
	aliases
)

func (s alias) String() string {
	return [...]string{"distinct", "dst is a", "dst is b", "a is b", "all same"}[s]
}

// checkFunc compares f with the specification on n elements, at offsets to a line.
func checkFunc(r *rand.Rand, f Func, t op.Type, o op.Op, n int, offsets [3]int, same alias) error {
	bytesOf := n * t.Size()
	dst, a, b := newSpan(offsets[0], bytesOf), newSpan(offsets[1], bytesOf), newSpan(offsets[2], bytesOf)
	if same == aIsB || same == allSame {
		b = a
	}
	if same == dstIsA || same == allSame {
		dst = a
	}
	if same == dstIsB {
		dst = b
	}
	fill(r, t, a.data)
	fill(r, t, b.data)
	beforeA, beforeB := bytes.Clone(a.data), bytes.Clone(b.data)
	want := make([]byte, bytesOf)
	Generic(t, o)(unsafe.Pointer(unsafe.SliceData(want)), a.at(), b.at(), n)
	f(dst.at(), a.at(), b.at(), n)
	err := equal(t, o, dst.data, want)
	for _, v := range []span{dst, a, b} {
		if err == nil {
			err = v.untouched()
		}
	}
	if err == nil && (dst.at() != a.at() && !bytes.Equal(a.data, beforeA) || dst.at() != b.at() && !bytes.Equal(b.data, beforeB)) {
		err = fmt.Errorf("an input is written")
	}
	if err != nil {
		return fmt.Errorf("%v %v of %d at %v, %v: %w", t, o, n, offsets, same, err)
	}
	return nil
}

// seeded is a source of random numbers that a failure's report lets repeat.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
