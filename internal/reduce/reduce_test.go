package reduce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestForIsNilWhereNothingIsReduced(t *testing.T) {
	for typ := range op.Types + 1 {
		for o := range op.Ops + 1 {
			has := op.Reduces(typ, o)
			require.Equal(t, has, For(typ, o) != nil, "For %v %v", typ, o)
			require.Equal(t, has, ForStream(typ, o) != nil, "ForStream %v %v", typ, o)
			require.Equal(t, has, Generic(typ, o) != nil, "Generic %v %v", typ, o)
		}
		require.Equal(t, op.Reduces(typ, op.Sum), Scale(typ) != nil, "Scale %v", typ)
	}
}

// eachLevel runs f with each level that this CPU has, generic too.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, name := range Levels() {
		t.Run(name, func(t *testing.T) {
			restore, err := Force(name)
			require.NoError(t, err)
			defer restore()
			f(t)
		})
	}
}

// eachFunc calls f with every Func of the level in use.
func eachFunc(f func(fn Func, t op.Type, o op.Op)) {
	eachKind(func(t op.Type) {
		for _, o := range reduced {
			f(For(t, o), t, o)
		}
		if t == op.Float32 || t == op.Float64 || t == op.Int32 || t == op.Int64 {
			f(ForStream(t, op.Sum), t, op.Sum)
		}
	})
}

func anyOffsets(r *rand.Rand) [3]int { return [3]int{r.IntN(64), r.IntN(64), r.IntN(64)} }

func TestFuncIsItsSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		eachFunc(func(f Func, typ op.Type, o op.Op) {
			for n := range 201 {
				if testing.Short() && n > 70 && r.IntN(8) > 0 {
					continue
				}
				require.NoError(t, checkFunc(r, f, typ, o, n, anyOffsets(r), distinct))
				require.NoError(t, checkFunc(r, f, typ, o, n, anyOffsets(r), alias(n)%aliases))
			}
			for _, n := range []int{1023, 5000, piece/typ.Size() + 1} { // the last takes two calls
				require.NoError(t, checkFunc(r, f, typ, o, n, anyOffsets(r), alias(r.IntN(int(aliases)))))
			}
		})
	})
}

func TestFuncAtEveryOffset(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		eachFunc(func(f Func, typ op.Type, o op.Op) {
			for offset := range 64 {
				for i := range 3 {
					offsets := anyOffsets(r)
					offsets[i] = offset
					require.NoError(t, checkFunc(r, f, typ, o, 64+r.IntN(64), offsets, distinct))
				}
			}
		})
	})
}

func TestStreamSumAtEveryOffset(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range []op.Type{op.Int32, op.Int64, op.Float32, op.Float64} {
			for offset := range 64 {
				for _, same := range []alias{distinct, dstIsA, dstIsB} {
					n := 4096/typ.Size() + r.IntN(100) - 10
					offsets := anyOffsets(r)
					offsets[0], offsets[int(same)] = offset, offset
					require.NoError(t, checkFunc(r, ForStream(typ, op.Sum), typ, op.Sum, n, offsets, same))
				}
			}
			for _, bytes := range []int{piece - 1, piece, piece + 8, 2*piece + 200} {
				require.NoError(t, checkFunc(r, ForStream(typ, op.Sum), typ, op.Sum, bytes/typ.Size(), anyOffsets(r), distinct))
			}
		}
	})
}

// TestHalfPairs has every value of the 16-bit floats on one side of every
// operation, and different ones on the other.
func TestHalfPairs(t *testing.T) {
	const all = 1 << 16
	rounds := 24
	if testing.Short() {
		rounds = 4
	}
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		a, b := make([]uint16, all), make([]uint16, all)
		got, want := make([]uint16, all), make([]uint16, all)
		for range rounds {
			factor, term := r.Uint32()|1, r.Uint32()
			for i := range a {
				a[i], b[i] = uint16(i), uint16((uint32(i)*factor+term)>>3)
			}
			for _, typ := range []op.Type{op.Float16, op.BFloat16} {
				for _, o := range reduced {
					Generic(typ, o)(unsafe.Pointer(&want[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), all)
					For(typ, o)(unsafe.Pointer(&got[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), all)
					require.NoError(t, equal(typ, o, asBytes(got), asBytes(want)), "%v %v", typ, o)
				}
			}
		}
	})
}

func asBytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func TestScaleIsItsSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		eachKind(func(typ op.Type) {
			for _, ranks := range []int{0, 1, 2, 3, 7, 8, 129, 1000, 70001} {
				for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 200, piece/typ.Size() + 3} {
					v := newSpan(r.IntN(64), n*typ.Size())
					fill(r, typ, v.data)
					want := bytes.Clone(v.data)
					generic.scale[typ](unsafe.Pointer(unsafe.SliceData(want)), n, ranks)
					Scale(typ)(v.at(), n, ranks)
					require.NoError(t, equal(typ, op.Sum, v.data, want), "%v of %d / %d", typ, n, ranks)
					require.NoError(t, v.untouched())
				}
			}
		})
	})
}

func TestCopies(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, n := range []int{0, 1, 63, 64, 65, streamed - 1, streamed, streamed + 77, piece - 1, piece, piece + 1, 3*piece + 100} {
			for range 16 {
				dst, src := newSpan(r.IntN(64), n), newSpan(r.IntN(64), n)
				for _, copy := range []func(dst, src unsafe.Pointer, n int){Copy, Stream} {
					fill(r, op.Uint8, src.data)
					copy(dst.at(), src.at(), n)
					require.True(t, bytes.Equal(src.data, dst.data), "%d bytes", n)
					require.NoError(t, dst.untouched())
				}
			}
		}
	})
}

// streamed is the least number of bytes that is streamed.
const streamed = 4096

func TestNothingIsAllocated(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		b := make([]byte, 3*piece)
		dst, src := unsafe.Pointer(&b[0]), unsafe.Pointer(&b[piece+piece/2])
		n := (piece + 64) / 4
		require.Zero(t, testing.AllocsPerRun(3, func() {
			For(op.Float32, op.Sum)(dst, dst, src, n)
			ForStream(op.Float32, op.Sum)(dst, dst, src, n)
			Scale(op.Float32)(dst, n, 3)
			Copy(dst, src, n)
			Stream(dst, src, n)
		}))
	})
}

// FuzzReduce has vectors that end in any place of a kernel's widest step, after some of these. TestFuncIsItsSpecification has long ones.
func FuzzReduce(f *testing.F) {
	const most = 1 << 9
	f.Add(uint64(1), uint8(op.Float32-op.Int8), uint8(op.Sum), uint16(100), uint8(4), uint8(8), uint8(60), uint8(distinct))
	f.Add(uint64(2), uint8(op.BFloat16-op.Int8), uint8(op.Max), uint16(33), uint8(1), uint8(2), uint8(3), uint8(dstIsA))
	f.Fuzz(func(t *testing.T, seed uint64, typ, o uint8, n uint16, dst, a, b, same uint8) {
		kind := op.Int8 + op.Type(typ)%op.Float64
		r := rand.New(rand.NewPCG(seed, 0))
		for _, l := range levels {
			for _, fn := range []Func{l.reduce[kind][o%uint8(op.Avg)], l.stream[kind][o%uint8(op.Avg)]} {
				err := checkFunc(r, fn, kind, op.Op(o)%op.Avg, int(n)%most, [3]int{int(dst % 64), int(a % 64), int(b % 64)}, alias(same)%aliases)
				require.NoError(t, err, l.name)
			}
		}
	})
}

// BenchmarkReduce is a kernel on vectors that lie in a second-level cache of 1 MiB.
// Its speed is that of one vector.
func BenchmarkReduce(b *testing.B) {
	const size = 128 << 10
	dst, x, y := make([]byte, size), make([]byte, size), make([]byte, size)
	for _, l := range levels {
		eachKind(func(t op.Type) {
			fillOnes(t, x)
			fillOnes(t, y)
			for _, o := range reduced {
				f := l.reduce[t][o]
				b.Run(fmt.Sprintf("%s/%v/%v", l.name, t, o), func(b *testing.B) {
					b.SetBytes(size)
					for b.Loop() {
						f(unsafe.Pointer(&dst[0]), unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), size/t.Size())
					}
				})
			}
		})
	}
}

// BenchmarkLarge is what streaming stores are for: results larger than the caches.
func BenchmarkLarge(b *testing.B) {
	const size = 64 << 20
	dst, x, y := make([]byte, size), make([]byte, size), make([]byte, size)
	d, s := unsafe.Pointer(&dst[0]), unsafe.Pointer(&x[0])
	for _, tc := range []struct {
		name string
		f    func()
	}{
		{"sum", func() { For(op.Float32, op.Sum)(d, s, unsafe.Pointer(&y[0]), size/4) }},
		{"streamsum", func() { ForStream(op.Float32, op.Sum)(d, s, unsafe.Pointer(&y[0]), size/4) }},
		{"copy", func() { Copy(d, s, size) }},
		{"stream", func() { Stream(d, s, size) }},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				tc.f()
			}
		})
	}
}

// BenchmarkScale is the end of an average.
func BenchmarkScale(b *testing.B) {
	const size = 128 << 10
	x := make([]byte, size)
	for _, l := range levels {
		eachKind(func(t op.Type) {
			b.Run(fmt.Sprintf("%s/%v", l.name, t), func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					l.scale[t](unsafe.Pointer(&x[0]), size/t.Size(), 3)
				}
			})
		})
	}
}

// fillOnes gives b the value 1, or 1.0.
func fillOnes(t op.Type, b []byte) {
	one := map[op.Type]uint64{op.Float16: 0x3c00, op.BFloat16: 0x3f80, op.Float32: 0x3f800000, op.Float64: 0x3ff0000000000000}[t]
	if one == 0 {
		one = 1
	}
	for i := 0; i < len(b); i += t.Size() {
		put(b[i:], t.Size(), one)
	}
}

// A sum into two places is the sum, in both, and nothing beside them is touched, however they lie.
func TestBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, l := range levels {
		eachKind(func(typ op.Type) {
			both, size := l.both[typ], typ.Size()
			if both == nil {
				return
			}
			for _, n := range []int{0, 1, 63, 64, 65, 4096/size - 1, 4096 / size, 4096/size + 1, 3333, (256<<10)/size - 1, (256 << 10) / size, (256<<10)/size + 1, 100_003} {
				for _, at := range [][4]int{{0, 0, 0, 0}, {size, size, 0, 0}, {size, 2 * size, 3 * size, size}, {64 - size, 64 - size, size, 0}, {1, 1, 0, 0}, {1, 2, 3, 4}} {
					other := newSpan(at[1], n*size)
					f := func(dst, a, b unsafe.Pointer, n int) {
						both(dst, other.at(), a, b, n)
						require.True(t, bytes.Equal(unsafe.Slice((*byte)(dst), n*size), other.data), "%s %v n %d at %v", l.name, typ, n, at)
					}
					require.NoError(t, checkFunc(r, f, typ, op.Sum, n, [3]int{at[0], at[2], at[3]}, distinct), "%s %v at %v", l.name, typ, at)
					require.NoError(t, other.untouched(), "%s %v n %d at %v", l.name, typ, n, at)
				}
			}
		})
	}
}
