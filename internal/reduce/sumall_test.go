package reduce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestForSumAllIsNilWhereThereIsNone(t *testing.T) {
	for typ := range op.Types + 1 {
		for o := range op.Ops + 1 {
			has := (typ.Half() || typ.Float8()) && (o == op.Sum || o == op.Avg)
			require.Equal(t, has, ForSumAll(typ, o) != nil, "%v %v", typ, o)
		}
	}
}

// TestSumAllIsItsSpecification has every length around the kernels' steps, every offset, all corner cases, memory around
// that nobody may touch, and a result that takes the place of each operand.
func TestSumAllIsItsSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range halves {
			for n := range 201 {
				for _, count := range []int{1, 2, 3, 4, 7} {
					require.NoError(t, checkSumAll(r, typ, n, count, n%(count+1)-1))
				}
			}
			for _, n := range []int{1023, 5000, piece/6 - 1, piece/6 + 1, piece + 3} {
				require.NoError(t, checkSumAll(r, typ, n, 3, r.IntN(4)-1))
			}
			require.NoError(t, checkSumAll(r, typ, 700, 65, 64))
			require.NoError(t, checkSumAll(r, typ, 200, piece, 1)) // more vectors than bytes that a step may read
		}
	})
}

// checkSumAll adds count vectors of n elements; the result lies where vector in is, beside all of them if that is -1.
func checkSumAll(r *rand.Rand, typ op.Type, n, count, in int) error {
	to, from := F32ToF16, F16ToF32
	if typ == op.BFloat16 {
		to, from = F32ToBF16, BF16ToF32
	}
	vectors := make([]span, min(count, 67))
	for i := range vectors {
		vectors[i] = newSpan(r.IntN(64), 2*n)
		fill(r, typ, vectors[i].data)
	}
	srcs, before := make([]unsafe.Pointer, count), make([][]byte, len(vectors))
	for i := range srcs {
		srcs[i] = vectors[i%len(vectors)].at()
	}
	for i, v := range vectors {
		before[i] = bytes.Clone(v.data)
	}
	want := make([]byte, 2*n)
	for i := range n {
		sum := from(uint16(get(before[0][2*i:], 2)))
		for k := range count - 1 {
			sum += from(uint16(get(before[(k+1)%len(before)][2*i:], 2)))
		}
		put(want[2*i:], 2, uint64(to(sum)))
	}
	dst := newSpan(r.IntN(64), 2*n)
	if in >= 0 {
		dst = vectors[in]
	}
	list := slices.Clone(srcs)
	ForSumAll(typ, op.Sum)(dst.at(), srcs, n)
	err := equal(typ, op.Sum, dst.data, want)
	if err == nil && !slices.Equal(list, srcs) {
		err = fmt.Errorf("the list of vectors is written")
	}
	return aside(err, vectors, before, dst, fmt.Sprintf("%v, %d vectors of %d, into %d", typ, count, n, in))
}

// aside is err, or that more was written than dst: before is what vectors had. what says of which call that is.
func aside(err error, vectors []span, before [][]byte, dst span, what string) error {
	for i, v := range append(vectors, dst) {
		if err == nil {
			err = v.untouched()
		}
		if i < len(before) && v.at() != dst.at() && err == nil && !bytes.Equal(before[i], v.data) {
			err = fmt.Errorf("vector %d is written", i)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Ones beside a number that has no room for them are lost one by one, but not together.
func TestSumAllRoundsOnce(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, tc := range []struct {
			typ       op.Type
			to        func(float32) uint16
			large     float32
			each, all float32 // rounded after each addition, and once
		}{
			{op.BFloat16, F32ToBF16, 256, 256, 260},
			{op.Float16, F32ToF16, 2048, 2048, 2052},
		} {
			const n = 37
			var v [5][n]uint16
			srcs := make([]unsafe.Pointer, len(v))
			for i := range v {
				srcs[i] = unsafe.Pointer(&v[i])
				for k := range v[i] {
					v[i][k] = tc.to(1)
					if i == 0 {
						v[i][k] = tc.to(tc.large)
					}
				}
			}
			each, all := v[0], [n]uint16{}
			for _, src := range srcs[1:] {
				For(tc.typ, op.Sum)(unsafe.Pointer(&each), unsafe.Pointer(&each), src, n)
			}
			ForSumAll(tc.typ, op.Avg)(unsafe.Pointer(&all), srcs, n)
			for k := range n {
				require.Equal(t, tc.to(tc.each), each[k], "%v", tc.typ)
				require.Equal(t, tc.to(tc.all), all[k], "%v", tc.typ)
			}
		}
	})
}

func TestSumAllAllocatesNothing(t *testing.T) {
	v := make([]uint16, piece)
	at := unsafe.Pointer(&v[0])
	srcs := []unsafe.Pointer{at, at, at}
	eachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(3, func() {
			for _, typ := range halves {
				ForSumAll(typ, op.Sum)(at, srcs, len(v)-1)
			}
		}))
	})
}

// BenchmarkSumAll adds vectors of 8 KiB, as the CPU engine does, in one go and one after another.
func BenchmarkSumAll(b *testing.B) {
	const n = 4 << 10
	for _, l := range levels {
		for _, typ := range halves {
			for _, count := range []int{3, 4, 8} {
				srcs := make([]unsafe.Pointer, count)
				for i := range srcs {
					x := make([]uint16, n)
					fillOnes(typ, asBytes(x))
					srcs[i] = unsafe.Pointer(&x[0])
				}
				dst := unsafe.Pointer(&make([]uint16, n)[0])
				for _, tc := range []struct {
					name string
					f    func()
				}{
					{"all", func() { l.sumAll[typ](dst, srcs, n) }},
					{"pairs", func() {
						a := srcs[0]
						for _, x := range srcs[1:] {
							l.reduce[typ][op.Sum](dst, a, x, n)
							a = dst
						}
					}},
				} {
					b.Run(fmt.Sprintf("%s/%v/%d/%s", l.name, typ, count, tc.name), func(b *testing.B) {
						b.SetBytes(int64(2 * n * count))
						for b.Loop() {
							tc.f()
						}
					})
				}
			}
		}
	}
}
