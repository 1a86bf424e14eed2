package reduce

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// Every length around the kernels' steps, every offset, all corner cases, memory around that nobody may touch, one weight and
// two, with an end and without, and a result that takes the place of each operand.
func TestWeighIsItsSpecification(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range halves {
			for n := range 201 {
				for _, count := range []int{1, 2, 3, 7} {
					require.NoError(t, checkWeigh(r, typ, n, count, n%(count+1)-1))
				}
			}
			for _, n := range []int{1023, 5000, piece/6 - 1, piece/6 + 1, piece + 3} {
				require.NoError(t, checkWeigh(r, typ, n, 3, r.IntN(4)-1))
			}
			require.NoError(t, checkWeigh(r, typ, 700, 65, 64))
		}
	})
}

// checkWeigh weighs count vectors of n elements; the result lies where vector in is, beside all of them if that is -1.
func checkWeigh(r *rand.Rand, typ op.Type, n, count, in int) error {
	vectors, srcs, before := make([]span, count), make([]unsafe.Pointer, count), make([][]byte, count)
	for i := range vectors {
		vectors[i] = newSpan(r.IntN(64), 2*n)
		fill(r, typ, vectors[i].data)
		srcs[i], before[i] = vectors[i].at(), bytes.Clone(vectors[i].data)
	}
	w := &weights{each: [2]float32{.25}, mul: 1, div: 1}
	if n%2 == 0 {
		w.mul, w.div = .5+r.Float32(), .5+r.Float32()
	}
	if count == 2 && n%3 != 0 {
		w.two, w.each[1] = 1, .5
	}
	want, dst := newSpan(0, 2*n), newSpan(r.IntN(64), 2*n)
	weighSpec(typ, want.at(), srcs, w, 0, n)
	if in >= 0 {
		dst = vectors[in]
	}
	weigh(typ, dst.at(), srcs, w, n)
	err := equal(typ, op.Sum, dst.data, want.data)
	return aside(err, vectors, before, dst, fmt.Sprintf("%v, %d vectors of %d, into %d", typ, count, n, in))
}

// Results are those of exact arithmetic, rounded once: of random elements, and of those that overflow or vanish on the way.
func TestMeansAreRoundedOnce(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := seeded(t)
		for _, typ := range halves {
			from, to, most := F16ToF32, F32ToF16, uint16(0x7bff)
			if typ == op.BFloat16 {
				from, to, most = BF16ToF32, F32ToBF16, 0x7f7f
			}
			for _, count := range []int{1, 2, 3, 4, 5, 7, 8, 64, 100} {
				const n = 67
				x, srcs := make([][n]uint16, count), make([]unsafe.Pointer, count)
				for k := range x {
					srcs[k] = unsafe.Pointer(&x[k])
					for i := range n {
						switch i % 4 {
						case 0:
							x[k][i] = most
						case 1:
							x[k][i] = 1 // the least there is
						case 2:
							x[k][i] = to(float32(r.IntN(9) - 4))
						default:
							x[k][i] = to(r.Float32() * 8)
						}
					}
				}
				exact := func(i int) (sum float64) {
					for k := range x {
						sum += float64(from(x[k][i]))
					}
					return sum
				}
				// A unit in the last place at the result, and what float32 may be off by.
				near := func(got uint16, want, roundings float64, what string, i int) {
					unit := float64(from(to(float32(math.Abs(want)))+1) - from(to(float32(math.Abs(want)))))
					if math.Abs(want) >= float64(from(most)) {
						unit = float64(from(most) - from(most-1))
					}
					require.InDelta(t, want, float64(from(got)), (roundings/2+1e-4)*unit, "%s: %v, %d operands, element %d", what, typ, count, i)
				}
				var got [n]uint16
				p := unsafe.Pointer(&got)
				MeanAll(typ, p, srcs, n)
				for i := range n {
					near(got[i], exact(i)/float64(count), 1, "MeanAll", i)
				}
				ScaledAll(typ, p, srcs, 1./1024, n)
				for i := range n {
					near(got[i], exact(i)/1024, 1, "ScaledAll", i)
				}
				// One after another, as a ring does it.
				got = x[0]
				for k := 1; k < count; k++ {
					AddShares(typ, p, p, srcs[k], n, int32(k), 1)
				}
				MeanOfShare(typ, p, n, count)
				for i := range n {
					if i%4 < 3 {
						near(got[i], exact(i)/float64(count), 2, "MeanOfShare", i)
					}
				}
				sum, one := make([]float32, n), make([]float32, n)
				for k := range x {
					Widen(typ, unsafe.Pointer(&one[0]), srcs[k], n, count)
					Add(op.Float32, sum, one)
				}
				Narrow(typ, p, unsafe.Pointer(&sum[0]), 1./1024, n, count)
				for i := range n {
					near(got[i], exact(i)/1024, 1, "Narrow", i)
				}
			}
		}
	})
}

// An average of any number of equal elements is that element, by whatever way: of the largest, of the least, of all between.
func TestMeansOfEqualElements(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, typ := range halves {
			from := F16ToF32
			if typ == op.BFloat16 {
				from = BF16ToF32
			}
			const n = 1 << 16
			all, out := make([]uint16, n), make([]uint16, n)
			for i := range all {
				if x := float64(from(uint16(i))); !math.IsNaN(x) && !math.IsInf(x, 0) {
					all[i] = uint16(i)
				}
			}
			p, to := unsafe.Pointer(&all[0]), unsafe.Pointer(&out[0])
			for _, count := range []int{1, 2, 3, 5, 7, 64, 100} {
				srcs := make([]unsafe.Pointer, count)
				for i := range srcs {
					srcs[i] = p
				}
				MeanAll(typ, to, srcs, n)
				require.Equal(t, all, out, "%v, %d ranks", typ, count)
			}
			for count := 1; count < 1<<20; count *= 2 { // shares of powers of two are exact
				AddShares(typ, to, p, p, n, int32(count), int32(count))
				require.Equal(t, all, out, "%v, two shares of %d", typ, count)
				MeanOfShare(typ, to, n, 2*count)
				require.Equal(t, all, out, "%v, the mean of two shares of %d", typ, count)
			}
		}
	})
}

// One number beside zeros, multiplied by a factor below 1, is that number times the factor: each number, among any number of ranks.
func TestWideSumsOfOneNumber(t *testing.T) {
	for _, typ := range halves {
		from, to := F16ToF32, F32ToF16
		if typ == op.BFloat16 {
			from, to = BF16ToF32, F32ToBF16
		}
		const n = 1 << 16
		all, got, wide := make([]uint16, n), make([]uint16, n), make([]float32, n)
		for i := range all {
			all[i] = uint16(i)
		}
		for _, factor := range []float32{.75, -.75, .5, .25, 1. / 3, .1, 1. / 1024, 0x1p-14, 0x1p-24, 0} {
			factor = from(to(factor))
			for _, ranks := range []int{2, 3, 4, 5, 9, 1 << 16} {
				Widen(typ, unsafe.Pointer(&wide[0]), unsafe.Pointer(&all[0]), n, ranks)
				Narrow(typ, unsafe.Pointer(&got[0]), unsafe.Pointer(&wide[0]), factor, n, ranks)
				for i, x := range got {
					exact := from(uint16(i)) * factor
					if x != to(exact) && !(from(x) != from(x) && exact != exact) {
						require.FailNow(t, "wrong", "%v: %g times %g, %d ranks: %g", typ, from(uint16(i)), factor, ranks, from(x))
					}
				}
			}
		}
	}
}

func TestWeighAllocatesNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		var x [3][300]uint16
		got := testing.AllocsPerRun(100, func() {
			a, b, dst := unsafe.Pointer(&x[1]), unsafe.Pointer(&x[2]), unsafe.Pointer(&x[0])
			AddShares(op.Float16, dst, a, b, 300, 3, 1)
			MeanOfShare(op.BFloat16, dst, 300, 3)
		})
		require.Zero(t, got)
	})
}
