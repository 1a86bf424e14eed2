package amp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/amp"
)

var inf = float32(math.Inf(1))

// The scale is the greatest power of two that keeps the largest number; at 448 and 57,344 exactly, and just above.
func TestScaleOf(t *testing.T) {
	for _, tc := range []struct {
		amax   float32
		margin int
		e4m3   float64
		e5m2   float64
	}{
		{448, 0, 1, 128}, {448.1, 0, .5, 64}, {57344, 0, 1. / 128, 1}, {1, 0, 256, 32768}, {.9, 0, 256, 32768}, {.875, 0, 512, 65536},
		{1, 2, 64, 8192}, {math.MaxFloat32, 0, 0x1p-120, 0x1p-113}, {math.SmallestNonzeroFloat32, 0, 0x1p126, 0x1p126},
		{0, 0, 1, 1}, {inf, 0, 1, 1}, {float32(math.NaN()), 0, 1, 1},
	} {
		require.Equal(t, float32(tc.e4m3), amp.ScaleOf[ccl.Float8E4M3](tc.amax, tc.margin), "%v", tc.amax)
		require.Equal(t, float32(tc.e5m2), amp.ScaleOf[ccl.Float8E5M2](tc.amax, tc.margin), "%v", tc.amax)
	}
	require.Equal(t, float32(3), amp.Amax([]float32{1, -3, 2}))
	require.Zero(t, amp.Amax(nil))
	for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
		require.True(t, math.IsNaN(float64(amp.Amax([]float32{1, bad, 2}))))
	}
}

// numbersOf are the finite numbers of a format with so many bits of exponent and of mantissa.
func numbersOf(exponent, mantissa int, most float64) (list []float64) {
	bias := 1<<(exponent-1) - 1
	for e := range 1 << exponent {
		for m := range 1 << mantissa {
			v := math.Ldexp(float64(m|1<<mantissa), e-bias-mantissa)
			if e == 0 {
				v = math.Ldexp(float64(m), 1-bias-mantissa)
			}
			if v <= most {
				list = append(list, v)
			}
		}
	}
	return list
}

// exact is x rounded to the nearest number, the one with an even place of two.
func exact(numbers []float64, x float64) float64 {
	best := 0
	for i, v := range numbers {
		if d, least := math.Abs(v-math.Abs(x)), math.Abs(numbers[best]-math.Abs(x)); d < least || d == least && i%2 == 0 {
			best = i
		}
	}
	return math.Copysign(numbers[best], x)
}

// quantizes compares with exact rounding, by tensor and by block.
func quantizes[F amp.Float8](t *testing.T, numbers []float64) {
	r := rand.New(rand.NewPCG(1, 2))
	x, q, y := make([]float32, 1000), make([]F, 1000), make([]float32, 1000)
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Ldexp(1, r.IntN(30)-20))
	}
	scale := amp.ScaleOf[F](amp.Amax(x), 0)
	require.True(t, amp.Quantize(q, x, scale))
	amp.Dequantize(y, q, scale)
	for i, v := range x {
		require.Equal(t, exact(numbers, float64(v)*float64(scale))/float64(scale), float64(y[i]))
	}
	scales := make([]float32, 8)
	finite, err := amp.QuantizeBlocks(q, scales, x, 128)
	require.NoError(t, err)
	require.True(t, finite)
	require.NoError(t, amp.DequantizeBlocks(y, q, scales, 128))
	for i, v := range x {
		s := amp.ScaleOf[F](amp.Amax(x[i/128*128:min(i/128*128+128, 1000)]), 0)
		require.Equal(t, s, scales[i/128])
		require.Equal(t, exact(numbers, float64(v)*float64(s))/float64(s), float64(y[i]))
	}
	most := float32(numbers[len(numbers)-1])
	odd := []float32{1, inf, -inf, float32(math.NaN())}
	require.False(t, amp.Quantize(q[:4], odd, 1), "told")
	amp.Dequantize(y[:4], q[:4], 1)
	require.Equal(t, []float32{1, most, -most}, y[:3])
	require.True(t, y[3] != y[3])
	finite, err = amp.QuantizeBlocks(q[:4], scales[:2], odd, 2)
	require.NoError(t, err)
	require.False(t, finite)
	require.False(t, amp.Quantize(q, x[:5], 1), "of another length")
	require.False(t, amp.Quantize(q[:1], x[:1], float32(math.NaN())), "by what is no scale")
	for _, x := range []float32{math.MaxFloat32, -math.MaxFloat32, .999 * math.MaxFloat32} { // which are rounded up to 2^128
		scale := amp.ScaleOf[F](amp.Amax([]float32{x}), 0)
		require.True(t, amp.Quantize(q[:1], []float32{x}, scale))
		amp.Dequantize(y[:1], q[:1], scale)
		require.Equal(t, float32(math.Copysign(math.MaxFloat32, float64(x))), y[0])
	}
	_, err = amp.QuantizeBlocks(q, scales[:7], x, 128)
	require.EqualError(t, err, "amp: QuantizeBlocks of 1000 numbers to 1000, in blocks of 128 with 7 scales: a scale each")
	require.ErrorContains(t, amp.DequantizeBlocks(y, q, scales, 0), "in blocks of 0")
}

func TestQuantize(t *testing.T) {
	quantizes[ccl.Float8E4M3](t, numbersOf(4, 3, 448))
	quantizes[ccl.Float8E5M2](t, numbersOf(5, 2, 57344))
}

// Current scales are those of the tensors now, and delayed ones those of the greatest magnitude of the window, on all
// ranks alike; a tensor that is not finite on one rank is told on all, and keeps its scale.
func TestScales(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		for _, tc := range []struct {
			window, margin int
			want           []float32 // after each step, with magnitudes 1, 8, 2, not finite, 2, .25
		}{
			{0, 0, []float32{256, 32, 128, 128, 128, 1024}},
			{2, 0, []float32{256, 32, 32, 32, 128, 128}},
			{3, 1, []float32{128, 16, 16, 16, 64, 64}},
		} {
			s, err := amp.NewScales[ccl.Float8E4M3](t.Context(), c, amp.ScalesOptions{Tensors: 2, Window: tc.window, Margin: tc.margin})
			require.NoError(t, err)
			require.Equal(t, float32(1), s.Scale(0))
			for step, x := range []float32{1, 8, 2, inf, 2, 0} {
				if c.Rank() == step%3 { // the others have less
					s.Note(0, []float32{.25, -x})
				}
				s.Note(0, []float32{min(x, 1) / 1024})
				s.Note(1, []float32{448})
				odd, err := s.Update(t.Context())
				require.NoError(t, err)
				if x == inf {
					require.Equal(t, []int{0}, odd)
				} else {
					require.Empty(t, odd)
				}
				require.Equal(t, tc.want[step], s.Scale(0), "window %d, step %d", tc.window, step)
				require.Equal(t, float32(math.Ldexp(1, -tc.margin)), s.Scale(1))
				st := s.State()
				if s, err = amp.NewScales[ccl.Float8E4M3](t.Context(), c, amp.ScalesOptions{Tensors: 2, Window: tc.window, Margin: tc.margin}); err == nil {
					err = s.Restore(st)
				}
				require.NoError(t, err)
			}
			require.ErrorContains(t, s.Restore(amp.ScalesState{}), "amp: Restore of 0 scales")
			for _, odd := range []float32{0, -1, inf, float32(math.NaN()), 1e-45, 3} {
				st := s.State()
				st.Scales = []float32{1, odd}
				require.ErrorContains(t, s.Restore(st), "amp: Restore of a scale of")
			}
			for _, odd := range []float32{-1, inf, float32(math.NaN())} {
				st := s.State()
				st.Past = slices.Clone(st.Past)
				st.Past[len(st.Past)-1] = odd
				require.ErrorContains(t, s.Restore(st), "amp: Restore of a magnitude of")
			}
			require.Equal(t, float32(math.Ldexp(1, -tc.margin)), s.Scale(1))
		}
	})
}

// Options that differ or make no sense are refused on all ranks.
func TestScalesRefuse(t *testing.T) {
	for _, tc := range []struct {
		o    amp.ScalesOptions
		want string
	}{
		{amp.ScalesOptions{Tensors: -1}, "none may be negative"}, {amp.ScalesOptions{Tensors: 2, Margin: 65}, "Margin at most 64"},
		{amp.ScalesOptions{Tensors: 3}, "ranks differ"},
	} {
		t.Run(fmt.Sprint(tc.want), func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				o := amp.ScalesOptions{Tensors: 2}
				if c.Rank() == 1 {
					o = tc.o
				}
				_, err := amp.NewScales[ccl.Float8E5M2](t.Context(), c, o)
				require.ErrorContains(t, err, tc.want)
			})
		})
	}
}

// A tensor that there is not is told to all ranks by the next Update; nothing is made of its scale.
func TestScalesOfNoTensor(t *testing.T) {
	for want, use := range map[string]func(s *amp.Scales[ccl.Float8E4M3]){
		"amp: Note of tensor 2; there are 2, from 0 on":   func(s *amp.Scales[ccl.Float8E4M3]) { s.Note(2, []float32{1}) },
		"amp: Scale of tensor -1; there are 2, from 0 on": func(s *amp.Scales[ccl.Float8E4M3]) { require.True(t, s.Scale(-1) != s.Scale(-1)) },
	} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			c = ccltest.Split(t, c, 0, c.Rank())
			s, err := amp.NewScales[ccl.Float8E4M3](t.Context(), c, amp.ScalesOptions{Tensors: 2})
			require.NoError(t, err)
			if c.Rank() == 1 {
				use(s)
			}
			_, err = s.Update(t.Context())
			require.ErrorContains(t, err, want)
		})
	}
	_, err := amp.NewScales[ccl.Float8E4M3](t.Context(), nil, amp.ScalesOptions{})
	require.EqualError(t, err, "amp: NewScales: the Comm is nil")
}
