package reduce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		t    Type
		name string
		size int
	}{
		{Int8, "int8", 1}, {Uint8, "uint8", 1}, {Int16, "int16", 2}, {Uint16, "uint16", 2},
		{Int32, "int32", 4}, {Uint32, "uint32", 4}, {Int64, "int64", 8}, {Uint64, "uint64", 8},
		{Float16, "half", 2}, {BFloat16, "bfloat16", 2}, {Float32, "float", 4}, {Float64, "double", 8},
		{Float8E4M3, "f8e4m3", 1}, {Float8E5M2, "f8e5m2", 1}, {Types, "unknown", 0},
	} {
		require.Equal(t, tc.name, tc.t.String())
		require.Equal(t, tc.size, tc.t.Size(), tc.name)
	}
	var names []string
	for op := range Ops + 1 {
		names = append(names, op.String())
	}
	require.Equal(t, []string{"sum", "prod", "min", "max", "avg", "unknown"}, names)
}

func TestForIsNilWhereNothingIsReduced(t *testing.T) {
	for typ := range Types + 1 {
		for op := range Ops + 1 {
			has := typ < Float8E4M3 && op < Ops
			require.Equal(t, has, For(typ, op) != nil, "For %v %v", typ, op)
			require.Equal(t, has, ForStream(typ, op) != nil, "ForStream %v %v", typ, op)
			require.Equal(t, has, Generic(typ, op) != nil, "Generic %v %v", typ, op)
		}
		require.Equal(t, typ < Float8E4M3, Scale(typ) != nil, "Scale %v", typ)
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
func eachFunc(f func(fn Func, t Type, op Op)) {
	eachKind(func(t Type) {
		for _, op := range reduced {
			f(For(t, op), t, op)
		}
		if t == Float32 || t == Float64 || t == Int32 || t == Int64 {
			f(ForStream(t, Sum), t, Sum)
		}
	})
}

func anyOffsets(r *rand.Rand) [3]int { return [3]int{r.IntN(64), r.IntN(64), r.IntN(64)} }

func TestFuncIsItsSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		eachFunc(func(f Func, typ Type, op Op) {
			for n := range 201 {
				if testing.Short() && n > 70 && r.IntN(8) > 0 {
					continue
				}
				require.NoError(t, checkFunc(r, f, typ, op, n, anyOffsets(r), distinct))
				require.NoError(t, checkFunc(r, f, typ, op, n, anyOffsets(r), alias(n)%aliases))
			}
			for _, n := range []int{1023, 5000, piece/typ.Size() + 1} { // the last takes two calls
				require.NoError(t, checkFunc(r, f, typ, op, n, anyOffsets(r), alias(r.IntN(int(aliases)))))
			}
		})
	})
}

func TestFuncAtEveryOffset(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		eachFunc(func(f Func, typ Type, op Op) {
			for offset := range 64 {
				for i := range 3 {
					offsets := anyOffsets(r)
					offsets[i] = offset
					require.NoError(t, checkFunc(r, f, typ, op, 64+r.IntN(64), offsets, distinct))
				}
			}
		})
	})
}

func TestStreamSumAtEveryOffset(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range []Type{Int32, Int64, Float32, Float64} {
			for offset := range 64 {
				for _, same := range []alias{distinct, dstIsA, dstIsB} {
					n := 4096/typ.Size() + r.IntN(100) - 10
					offsets := anyOffsets(r)
					offsets[0], offsets[int(same)] = offset, offset
					require.NoError(t, checkFunc(r, ForStream(typ, Sum), typ, Sum, n, offsets, same))
				}
			}
			for _, bytes := range []int{piece - 1, piece, piece + 8, 2*piece + 200} {
				require.NoError(t, checkFunc(r, ForStream(typ, Sum), typ, Sum, bytes/typ.Size(), anyOffsets(r), distinct))
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
			for _, typ := range []Type{Float16, BFloat16} {
				for _, op := range reduced {
					Generic(typ, op)(unsafe.Pointer(&want[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), all)
					For(typ, op)(unsafe.Pointer(&got[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), all)
					require.NoError(t, equal(typ, op, asBytes(got), asBytes(want)), "%v %v", typ, op)
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
		eachKind(func(typ Type) {
			for _, ranks := range []int{0, 1, 2, 3, 7, 8, 129, 1000, 70001} {
				for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 200, piece/typ.Size() + 3} {
					v := newSpan(r.IntN(64), n*typ.Size())
					fill(r, typ, v.data)
					want := bytes.Clone(v.data)
					generic.scale[typ](unsafe.Pointer(unsafe.SliceData(want)), n, ranks)
					Scale(typ)(v.at(), n, ranks)
					require.NoError(t, equal(typ, Sum, v.data, want), "%v of %d / %d", typ, n, ranks)
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
					fill(r, Uint8, src.data)
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
			For(Float32, Sum)(dst, dst, src, n)
			ForStream(Float32, Sum)(dst, dst, src, n)
			Scale(Float32)(dst, n, 3)
			Copy(dst, src, n)
			Stream(dst, src, n)
		}))
	})
}

func FuzzReduce(f *testing.F) {
	f.Add(uint64(1), uint8(Float32), uint8(Sum), uint16(100), uint8(4), uint8(8), uint8(60), uint8(distinct))
	f.Add(uint64(2), uint8(BFloat16), uint8(Max), uint16(33), uint8(1), uint8(2), uint8(3), uint8(dstIsA))
	f.Fuzz(func(t *testing.T, seed uint64, typ, op uint8, n uint16, dst, a, b, same uint8) {
		kind := Type(typ) % Float8E4M3
		r := rand.New(rand.NewPCG(seed, 0))
		for _, l := range levels {
			for _, fn := range []Func{l.reduce[kind][op%uint8(Avg)], l.stream[kind][op%uint8(Avg)]} {
				err := checkFunc(r, fn, kind, Op(op)%Avg, int(n), [3]int{int(dst % 64), int(a % 64), int(b % 64)}, alias(same)%aliases)
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
		eachKind(func(t Type) {
			fillOnes(t, x)
			fillOnes(t, y)
			for _, op := range reduced {
				f := l.reduce[t][op]
				b.Run(fmt.Sprintf("%s/%v/%v", l.name, t, op), func(b *testing.B) {
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
		{"sum", func() { For(Float32, Sum)(d, s, unsafe.Pointer(&y[0]), size/4) }},
		{"streamsum", func() { ForStream(Float32, Sum)(d, s, unsafe.Pointer(&y[0]), size/4) }},
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
		eachKind(func(t Type) {
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
func fillOnes(t Type, b []byte) {
	one := map[Type]uint64{Float16: 0x3c00, BFloat16: 0x3f80, Float32: 0x3f800000, Float64: 0x3ff0000000000000}[t]
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
		eachKind(func(typ Type) {
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
					require.NoError(t, checkFunc(r, f, typ, Sum, n, [3]int{at[0], at[2], at[3]}, distinct), "%s %v at %v", l.name, typ, at)
					require.NoError(t, other.untouched(), "%s %v n %d at %v", l.name, typ, n, at)
				}
			}
		})
	}
}
