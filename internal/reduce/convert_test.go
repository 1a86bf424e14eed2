package reduce

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

var halves = []Type{Float16, BFloat16}

func TestConversionsAreNilWhereThereAreNone(t *testing.T) {
	for typ := range Types + 1 {
		has := typ == Float16 || typ == BFloat16
		require.Equal(t, has, Widen(typ) != nil, "Widen %v", typ)
		require.Equal(t, has, Narrow(typ) != nil, "Narrow %v", typ)
		require.Equal(t, has, Accumulate(typ) != nil, "Accumulate %v", typ)
	}
}

// Every 16-bit float becomes the float32 it is, and that becomes it again; NaNs become quiet.
func TestEveryHalf(t *testing.T) {
	const all = 1 << 16
	src, wide, back := make([]uint16, all), make([]float32, all), make([]uint16, all)
	for i := range src {
		src[i] = uint16(i)
	}
	eachLevel(t, func(t *testing.T) {
		for _, tc := range []struct {
			typ    Type
			to     func(uint16) float32
			inf, q uint16
		}{{Float16, F16ToF32, 0x7c00, 0x200}, {BFloat16, BF16ToF32, 0x7f80, 0x40}} {
			ToFloat32(tc.typ, wide, src)
			FromFloat32(tc.typ, back, wide)
			for i, x := range src {
				require.Equal(t, math.Float32bits(tc.to(x)), math.Float32bits(wide[i]), "%v %#x", tc.typ, x)
				if x&0x7fff > tc.inf {
					x |= tc.q
				}
				require.Equal(t, x, back[i], "%v", tc.typ)
			}
		}
	})
}

// TestConversionsAreTheirSpecification has every length around the kernels' steps, every offset, all corner cases, and
// memory around that nobody may touch.
func TestConversionsAreTheirSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range halves {
			for n := range 201 {
				checkConversions(t, r, typ, n)
			}
			for _, n := range []int{1023, 5000, piece/4 - 1, piece/4 + 1, piece/2 + 3} {
				checkConversions(t, r, typ, n)
			}
		}
	})
}

func checkConversions(t *testing.T, r *rand.Rand, typ Type, n int) {
	narrow, wide := newSpan(r.IntN(64), 2*n), newSpan(r.IntN(64), 4*n)
	fill(r, typ, narrow.data)
	from := bytes.Clone(narrow.data)
	want := make([]byte, 4*n)
	generic.widen[typ](unsafe.Pointer(unsafe.SliceData(want)), narrow.at(), n)
	Widen(typ)(wide.at(), narrow.at(), n)
	require.True(t, bytes.Equal(want, wide.data), "widen %v of %d", typ, n)

	fill(r, Float32, wide.data)
	for i := range n / 3 { // what rounding has its corners at: ties, and one off
		x := uint64(r.Uint32())&^0x1fff | []uint64{0, 1, 0x1fff, 0x1000, 0x0fff, 0x1001}[i%6]
		put(wide.data[12*i:], 4, x)
		x = uint64(r.Uint32())&^0xffff | []uint64{0, 1, 0xffff, 0x8000, 0x7fff, 0x8001}[i%6]
		put(wide.data[12*i+4:], 4, x)
	}
	before := bytes.Clone(wide.data)
	want = make([]byte, 2*n)
	generic.narrow[typ](unsafe.Pointer(unsafe.SliceData(want)), wide.at(), n)
	Narrow(typ)(narrow.at(), wide.at(), n)
	require.True(t, bytes.Equal(want, narrow.data), "narrow %v of %d: %x, want %x", typ, n, narrow.data, want)
	require.True(t, bytes.Equal(before, wide.data), "narrow %v of %d writes its source", typ, n)

	copy(narrow.data, from)
	sum, want := newSpan(r.IntN(64), 4*n), make([]byte, 4*n)
	generic.accumulate[typ](unsafe.Pointer(unsafe.SliceData(want)), wide.at(), narrow.at(), n)
	Accumulate(typ)(sum.at(), wide.at(), narrow.at(), n)
	require.NoError(t, equal(Float32, Sum, sum.data, bytes.Clone(want)), "accumulate %v of %d", typ, n)
	Accumulate(typ)(wide.at(), wide.at(), narrow.at(), n)
	require.NoError(t, equal(Float32, Sum, wide.data, want), "accumulate %v of %d in place", typ, n)
	require.True(t, bytes.Equal(from, narrow.data), "accumulate %v of %d writes its source", typ, n)
	for _, v := range []span{narrow, wide, sum} {
		require.NoError(t, v.untouched(), "%v of %d", typ, n)
	}
}

func TestConversionsAllocateNothing(t *testing.T) {
	wide, half := make([]float32, piece/2), make([]uint16, piece/2)
	eachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(3, func() {
			for _, typ := range halves {
				ToFloat32(typ, wide, half)
				AddTo(typ, wide, half)
				FromFloat32(typ, half, wide)
			}
			Add(Float32, wide, wide)
			SumSquares(wide)
		}))
	})
}

func BenchmarkConvert(b *testing.B) {
	const n = 32 << 10
	wide, half := make([]float32, n), make([]uint16, n)
	w, h := unsafe.Pointer(&wide[0]), unsafe.Pointer(&half[0])
	for _, l := range levels {
		for _, typ := range halves {
			for _, tc := range []struct {
				name string
				f    func()
			}{
				{"widen", func() { l.widen[typ](w, h, n) }},
				{"narrow", func() { l.narrow[typ](h, w, n) }},
				{"accumulate", func() { l.accumulate[typ](w, w, h, n) }},
			} {
				b.Run(fmt.Sprintf("%s/%v/%s", l.name, typ, tc.name), func(b *testing.B) {
					b.SetBytes(4 * n)
					for b.Loop() {
						tc.f()
					}
				})
			}
		}
	}
}
