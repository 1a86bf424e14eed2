package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func floatsOf(s span) []float32 { return unsafe.Slice((*float32)(s.at()), len(s.data)/4) }

// Kernels have the specification's bits: of ordinary blocks, of those with any bits in them, of tiny and of large ones, at any
// offset, and touch nothing outside.
func TestBlocksAreTheirSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for k := range blockCodes {
			for _, blocks := range []int{0, 1, 2, 3, 7, piece / 4 / k.Len(), piece/4/k.Len() + 1} {
				for round := range 12 {
					if blocks > 7 && round > 2 {
						break
					}
					src, got, want := newSpan(4*r.IntN(16), 4*blocks*k.Len()), newSpan(r.IntN(64), blocks*k.Bytes()), newSpan(0, blocks*k.Bytes())
					x := floatsOf(src)
					for i := range x {
						x[i] = float32(r.NormFloat64())
					}
					switch round % 4 {
					case 1: // any bits
						fill(r, op.Float32, src.data)
					case 2: // scales of all sizes, the smallest that there are among them
						for b := range blocks {
							by := float32(math.Ldexp(1, r.IntN(276)-149))
							for i := range k.Len() {
								x[b*k.Len()+i] *= by
							}
						}
					case 3: // halves between two integers
						for i := range x {
							x[i] = (float32(r.IntN(27)) - 13) / 2
						}
						for b := range blocks {
							x[b*k.Len()+r.IntN(k.Len())] = k.most()
						}
					}
					before := bytes.Clone(src.data)
					k.encodeSpec(want.at(), src.at(), blocks)
					k.Encode(got.data, x)
					require.Equal(t, want.data, got.data, "code %d, %d blocks, round %d", k, blocks, round)
					require.NoError(t, got.untouched())
					require.Equal(t, before, src.data)
					by := []float32{1, -1, 1. / 3}[round%3]
					for i, f := range []func([]float32, []byte, float32){k.Decode, k.AddDecoded} {
						y, w := newSpan(4*r.IntN(16), len(src.data)), newSpan(0, len(src.data))
						for i := range floatsOf(y) {
							floatsOf(y)[i] = float32(r.NormFloat64())
						}
						copy(w.data, y.data)
						[]blockDecoder{k.decodeSpec, k.addSpec}[i](w.at(), got.at(), blocks, by)
						f(floatsOf(y), got.data, by)
						require.NoError(t, equal(op.Float32, op.Max, y.data, w.data), "code %d, decoder %d, %d blocks, round %d", k, i, blocks, round)
						require.NoError(t, y.untouched())
					}
				}
			}
		}
	})
}

// What is written is what the comment of Blocks says, and elements come back within half a unit of it.
func TestBlocksAreWhatTheySay(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for k := range E4M3Blocks {
			x := make([]float32, k.Len())
			x[0], x[1], x[2], x[k.Len()-1] = 2*k.most(), -1, -3, 5 // a unit is 2; halves go to the even integer
			b := make([]byte, k.Bytes())
			k.Encode(b, x)
			require.Equal(t, float32(2), math.Float32frombits(binary.LittleEndian.Uint32(b)))
			want := make([]byte, k.Bytes()-4)
			if k == Int8Blocks {
				want[0], want[2], want[255] = 127, 0xfe, 2
			} else {
				want[0], want[2], want[31] = 7, 14, 2<<4
			}
			require.Equal(t, want, b[4:])
			y := slices.Repeat([]float32{1}, k.Len())
			k.AddDecoded(y, b, .5)
			require.Equal(t, []float32{1 + k.most(), 1, -1, 1}, y[:4])
			require.Equal(t, float32(3), y[k.Len()-1])
			require.True(t, k.Finite(b))
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xff800001)} {
				x[7] = bad
				k.Encode(b, x)
				require.Equal(t, append([]byte{0, 0, 0xc0, 0x7f}, make([]byte, k.Bytes()-4)...), b)
				require.False(t, k.Finite(slices.Concat(make([]byte, k.Bytes()), b)))
				k.Decode(y, b, .5)
				for _, v := range y {
					require.Equal(t, uint32(0x7fc00000), math.Float32bits(v))
				}
			}
			for _, tiny := range []float32{0x1p-120, math.SmallestNonzeroFloat32, 0} {
				clear(x)
				x[3] = -tiny
				k.Encode(b, x)
				require.Equal(t, make([]byte, k.Bytes()), b)
			}
			x[3] = -0x1p-119
			k.Encode(b, x)
			k.Decode(y, b, 1)
			require.InEpsilon(t, -0x1p-119, y[3], 1e-5)
			require.Panics(t, func() { k.Encode(b, x[1:]) })
			require.Panics(t, func() { k.Decode(x, b[1:], 1) })
		}
	})
}

// The root of the mean square of what is lost, of normal numbers: half of a part in 127 and in 7 of the largest of a block.
func TestBlocksError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k, most := range map[Blocks]float64{Int8Blocks: .0073, Int4Blocks: .112, E4M3Blocks: .027, E5M2Blocks: .054} {
		x := make([]float32, 1<<16)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		b, y := make([]byte, len(x)/k.Len()*k.Bytes()), slices.Clone(x)
		k.Encode(b, x)
		k.AddDecoded(y, b, -1)
		require.Less(t, math.Sqrt(SumSquares(y)/SumSquares(x)), most)
	}
}

func TestBlocksAllocateNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		x, b := make([]float32, 256), make([]byte, 260)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			Int8Blocks.Encode(b, x)
			Int8Blocks.AddDecoded(x, b, 1)
			Int8Blocks.Finite(b)
		}))
	})
}

// Whatever bytes come, kernels decode them as the specification does.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f, 1, 0xff, 0x80}, float32(1))
	f.Add([]byte{1, 0, 0x80, 0xff, 0x7f}, float32(-.25))
	f.Add([]byte{0, 0, 0, 0x80, 9}, float32(math.Inf(1)))
	f.Fuzz(func(t *testing.T, some []byte, by float32) {
		for k := range blockCodes {
			b := make([]byte, 3*k.Bytes())
			for i := range b {
				if len(some) > 0 {
					b[i] = some[i%len(some)]
				}
			}
			want, got := newSpan(0, 4*3*k.Len()), newSpan(4, 4*3*k.Len())
			clear(want.data)
			clear(got.data)
			k.addSpec(want.at(), unsafe.Pointer(&b[0]), 3, by)
			k.AddDecoded(floatsOf(got), b, by)
			require.NoError(t, equal(op.Float32, op.Sum, got.data, want.data))
			k.Finite(b)
		}
	})
}

// BenchmarkBlocks takes 128 MiB, which no cache holds, beside memory's own copy. Its speed is that of the elements.
func BenchmarkBlocks(b *testing.B) {
	x, y := make([]float32, 32<<20), make([]float32, 32<<20)
	for i := range x {
		x[i] = float32(i%251) - 125
	}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				f()
			}
		})
	}
	run("copy", func() { copy(y, x) })
	for _, l := range Levels() {
		restore, err := Force(l)
		require.NoError(b, err)
		for k := range blockCodes {
			coded := make([]byte, len(x)/k.Len()*k.Bytes())
			run(fmt.Sprintf("%s/%d/encode", l, k.Bytes()), func() { k.Encode(coded, x) })
			run(fmt.Sprintf("%s/%d/add", l, k.Bytes()), func() { k.AddDecoded(y, coded, .25) })
			run(fmt.Sprintf("%s/%d/decode", l, k.Bytes()), func() { k.Decode(y, coded, .25) })
		}
		restore()
	}
}
