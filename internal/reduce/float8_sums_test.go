package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// types8 are the types with 8-bit floats, by the exact arithmetic of float8.
var types8 = map[op.Type]float8{op.Float8E4M3: float8s[E4M3Blocks], op.Float8E5M2: float8s[E5M2Blocks]}

// rounded is nearest, by what it has found before, by the bits of a number: of a NaN it is one, and an infinity is the
// largest number.
func (f float8) rounded(found map[uint64]uint8, x float64) uint8 {
	if x != x {
		return nan8
	}
	b, ok := found[math.Float64bits(x)]
	if !ok {
		b = f.nearest(x)
		found[math.Float64bits(x)] = b
	}
	return b
}

// exact is what o makes of x and y, before it is rounded; of Min and Max it is one of them, and -0 is less than +0.
func exact(o op.Op, x, y float64) float64 {
	switch o {
	case op.Prod:
		return x * y
	case op.Min:
		return min(x, y)
	case op.Max:
		return max(x, y)
	case op.Avg:
		return (x + y) / 2
	}
	return x + y
}

// All pairs of numbers, by each operation, are exact arithmetic in float64 rounded once: sums and products beyond the largest
// number are that number, Min and Max keep infinities, and a NaN of either is a NaN.
func TestFloat8Pairs(t *testing.T) {
	const all = 1 << 16
	a, b, got := make([]uint8, all), make([]uint8, all), make([]uint8, all)
	for i := range all {
		a[i], b[i] = uint8(i), uint8(i>>8)
	}
	pa, pb, to := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&got[0])
	eachLevel(t, func(t *testing.T) {
		for typ, f := range types8 {
			found := map[uint64]uint8{}
			for _, o := range []op.Op{op.Sum, op.Prod, op.Min, op.Max, op.Avg} {
				reductions := map[string]func(){"For": func() { For(typ, o)(to, pa, pb, all) }, "ForStream": func() { ForStream(typ, o)(to, pa, pb, all) }}
				switch o {
				case op.Sum:
					reductions["SumAll"] = func() { ForSumAll(typ, o)(to, []unsafe.Pointer{pa, pb}, all) }
				case op.Avg:
					reductions = map[string]func(){"MeanAll": func() { MeanAll(typ, to, []unsafe.Pointer{pa, pb}, all) }}
				}
				for name, reduce := range reductions {
					reduce()
					for i, g := range got {
						x, y := f.value(a[i]), f.value(b[i])
						z := exact(o, x, y)
						want := f.rounded(found, z)
						if (o == op.Min || o == op.Max) && math.IsInf(z, 0) {
							want = map[bool]uint8{false: 0x7c, true: 0xfc}[z < 0]
						}
						if z != z && f.value(g) != f.value(g) {
							continue
						}
						if g != want {
							require.FailNow(t, "wrong", "%v %v by %s of %#x and %#x, %v and %v: %#x, not %#x", typ, o, name, a[i], b[i], x, y, g, want)
						}
					}
				}
			}
		}
	})
}

// Sums and products of two are those of NCCL's kernels, which compute in half and convert with saturation.
func TestFloat8PairsAreThoseOfHalf(t *testing.T) {
	for typ, f := range types8 {
		for _, o := range []op.Op{op.Sum, op.Prod} {
			for i := range 1 << 16 {
				a, b := uint8(i), uint8(i>>8)
				half := apply(op.Float16, o, uint64(F32ToF16(f.from(a))), uint64(F32ToF16(f.from(b))))
				want, got := f.to(F16ToF32(uint16(half))), uint8(apply(typ, o, uint64(a), uint64(b)))
				if got != want && (f.from(got) == f.from(got) || f.from(want) == f.from(want)) {
					require.FailNow(t, "wrong", "%v %v of %#x and %#x: %#x, by half %#x", typ, o, a, b, got, want)
				}
			}
		}
	}
}

// The sort of a NaN of Min and Max is specified: the first one's, made quiet.
func TestFloat8NaN(t *testing.T) {
	for _, tc := range []struct {
		t          op.Type
		op         op.Op
		a, b, want uint64
	}{
		{op.Float8E4M3, op.Min, 0xff, 0x01, 0xff}, {op.Float8E4M3, op.Max, 0x01, 0x7f, 0x7f}, {op.Float8E4M3, op.Max, 0xff, 0x7f, 0xff},
		{op.Float8E5M2, op.Min, 0x7d, 0x01, 0x7f}, {op.Float8E5M2, op.Max, 0x01, 0xfd, 0xff}, {op.Float8E5M2, op.Max, 0x7e, 0xfd, 0x7e},
		{op.Float8E5M2, op.Sum, 0x7c, 0xfc, 0x7f}, {op.Float8E5M2, op.Prod, 0x7c, 0x00, 0x7f},
	} {
		got := apply(tc.t, tc.op, tc.a, tc.b)
		if tc.op == op.Sum || tc.op == op.Prod {
			got &= signless8
		}
		require.Equal(t, tc.want, got, "%v %v %#x %#x", tc.t, tc.op, tc.a, tc.b)
	}
}

// More than two operands are added in float32, divided there, and rounded once, in place and out of place, by each way: all
// at once, and widened, added and narrowed as between hosts.
func TestFloat8SumsRoundOnce(t *testing.T) {
	for typ, f := range types8 {
		r, found := rand.New(rand.NewPCG(3, uint64(typ))), map[uint64]uint8{}
		for _, count := range []int{1, 2, 3, 5, 8, 64, 100} {
			for _, n := range []int{1, 255, 256, 257, 3001} {
				x, srcs := make([][]uint8, count), make([]unsafe.Pointer, count)
				sums, one, want := make([]float32, n), make([]float32, n), make([]float32, n)
				for k := range x {
					x[k] = make([]uint8, n)
					srcs[k] = unsafe.Pointer(&x[k][0])
					for i := range x[k] {
						x[k][i] = uint8(r.Uint32())
						want[i] = float32(f.value(x[k][i]))
						if k == 0 {
							sums[i] = want[i] // -0, too
						} else {
							sums[i] += want[i]
						}
					}
					Widen(typ, unsafe.Pointer(&one[0]), srcs[k], n, count)
					for i, v := range one {
						if v != want[i] && (v == v || want[i] == want[i]) {
							require.Equal(t, want[i], v, "Widen of %v", typ)
						}
					}
				}
				is := func(got []uint8, by float32, what string) {
					for i, g := range got {
						want := sums[i] / by
						if w := f.rounded(found, float64(want)); g != w && (want == want || f.from(g) == f.from(g)) {
							require.FailNow(t, "wrong", "%s of %d, %v: element %d of %d is %#x, not %#x of %v", what, count, typ, i, n, g, w, want)
						}
					}
				}
				got := make([]uint8, n)
				p := unsafe.Pointer(&got[0])
				ForSumAll(typ, op.Sum)(p, srcs, n)
				is(got, 1, "SumAll")
				MeanAll(typ, p, srcs, n)
				is(got, float32(count), "MeanAll")
				Narrow(typ, p, unsafe.Pointer(&sums[0]), 1, n, count)
				is(got, 1, "Narrow")
				MeanAll(typ, srcs[count-1], srcs, n)
				is(x[count-1], float32(count), "MeanAll in place")
			}
		}
	}
}

// Scale divides what it is given, rounded already, in float32.
func TestFloat8Scale(t *testing.T) {
	for typ, f := range types8 {
		for _, ranks := range []int{0, 1, 2, 3, 7, 1000} {
			for i := range 256 {
				b := uint8(i)
				want := f.rounded(map[uint64]uint8{}, float64(float32(f.value(b))/float32(max(ranks, 1))))
				if ranks < 2 {
					want = b
				}
				Scale(typ)(unsafe.Pointer(&b), 1, ranks)
				require.True(t, b == want || f.from(b) != f.from(b) && f.from(want) != f.from(want), "%v: %#x / %d is %#x, not %#x", typ, i, ranks, b, want)
			}
		}
	}
}

func TestFloat8AllocatesNothing(t *testing.T) {
	var x [3][300]uint8
	var wide [300]float32
	a, b, dst, w := unsafe.Pointer(&x[1]), unsafe.Pointer(&x[2]), unsafe.Pointer(&x[0]), unsafe.Pointer(&wide)
	srcs := []unsafe.Pointer{a, b, dst}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		For(op.Float8E4M3, op.Sum)(dst, a, b, 300)
		ForSumAll(op.Float8E5M2, op.Sum)(dst, srcs, 300)
		MeanAll(op.Float8E4M3, dst, srcs, 300)
		Scale(op.Float8E4M3)(dst, 300, 3)
		Widen(op.Float8E4M3, w, a, 300, 3)
		Narrow(op.Float8E4M3, dst, w, 1, 300, 3)
	}))
}
