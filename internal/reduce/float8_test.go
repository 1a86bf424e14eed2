package reduce

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// float8 is a format with exact arithmetic: sign, exponent and mantissa of each of its 256 numbers.
type float8 struct {
	exponent, mantissa, bias int
	infinite                 bool
	to                       func(float32) uint8
	from                     func(uint8) float32
}

var float8s = map[Blocks]float8{
	E4M3Blocks: {4, 3, 7, false, F32ToE4M3, E4M3ToF32},
	E5M2Blocks: {5, 2, 15, true, F32ToE5M2, E5M2ToF32},
}

// value is the number of b, by the definition.
func (f float8) value(b uint8) float64 {
	sign, e, m := 1., int(b>>f.mantissa)&(1<<f.exponent-1), int(b)&(1<<f.mantissa-1)
	if b&0x80 != 0 {
		sign = -1
	}
	top := e == 1<<f.exponent-1
	switch {
	case f.infinite && top && m == 0:
		return math.Inf(int(sign))
	case f.infinite && top, !f.infinite && top && m == 1<<f.mantissa-1:
		return math.NaN()
	case e == 0:
		return sign * math.Ldexp(float64(m), 1-f.bias-f.mantissa)
	}
	return sign * math.Ldexp(float64(m|1<<f.mantissa), e-f.bias-f.mantissa)
}

// nearest is the finite number of f that is nearest to x, the even one of two, by looking at all.
func (f float8) nearest(x float64) uint8 {
	most := 448.
	if f.infinite {
		most = 57344
	}
	x = math.Copysign(min(math.Abs(x), most), x)
	best, off := uint8(0), math.Inf(1)
	for b := range 256 {
		v := f.value(uint8(b))
		if math.IsNaN(v) || math.IsInf(v, 0) || math.Signbit(v) != math.Signbit(x) {
			continue
		}
		if d := math.Abs(v - x); d < off || d == off && b%2 == 0 {
			best, off = uint8(b), d
		}
	}
	return best
}

// What is looked up by the upper half, rounded to odd, is what is rounded at once.
func TestFloat8Codes(t *testing.T) {
	for _, f := range []*format8{e4m3, e5m2} {
		codes := f.codes()
		for upper := range uint32(1 << 16) {
			for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
				x := math.Float32frombits(upper<<16 | lower)
				if got, want := codes[oddUpper(x)], f.encode(x); got != want {
					require.FailNow(t, "wrong", "%#x: %#x, not %#x", math.Float32bits(x), got, want)
				}
			}
		}
	}
}

// Each of the 256 numbers is what the format says, and comes back; and each float32 becomes the number that exact
// rounding gives: those at, just below and just above all midpoints, beyond the largest, tiny, and random ones.
func TestFloat8(t *testing.T) {
	for k, f := range float8s {
		var at []float32
		for b := range 256 {
			v, got := f.value(uint8(b)), f.from(uint8(b))
			if math.IsNaN(v) {
				require.True(t, got != got, "code %d, %#x", k, b)
				require.Equal(t, uint8(nan8), f.to(got)&signless8)
				continue
			}
			require.Equal(t, math.Float32bits(float32(v)), math.Float32bits(got), "code %d, %#x", k, b)
			if math.IsInf(v, 0) {
				require.Equal(t, uint8(b)-1, f.to(got), "an infinity is the largest number")
				continue
			}
			require.Equal(t, uint8(b), f.to(got))
			next := f.value(uint8(b) + 1)
			if !math.IsNaN(next) && !math.IsInf(next, 0) {
				at = append(at, float32((v+next)/2))
			}
		}
		r := rand.New(rand.NewPCG(1, uint64(k)))
		at = append(at, k.most(), 1.03*k.most(), 1.04*k.most(), 2*k.most(), math.MaxFloat32, math.SmallestNonzeroFloat32)
		for range 2000 {
			at = append(at, float32(r.NormFloat64()*math.Ldexp(1, r.IntN(40)-22)))
		}
		for _, x := range at {
			for _, y := range []float32{x, -x, math.Nextafter32(x, 0), math.Nextafter32(x, math.MaxFloat32)} {
				want := f.nearest(float64(y))
				require.Equal(t, want, f.to(y), "code %d: %v is %v", k, y, f.value(want))
			}
		}
		require.Equal(t, f.nearest(math.MaxFloat32), f.to(float32(math.Inf(1))))
		require.Equal(t, f.nearest(-math.MaxFloat32), f.to(float32(math.Inf(-1))))
		require.Equal(t, uint8(0xff), f.to(math.Float32frombits(0xffc00001)))
	}
}

// Blocks of 8-bit floats have the scale that the comment of Blocks says, and the nearest number of each element; a sum of
// decoded blocks is that of float32.
func TestFloat8Blocks(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for k, f := range float8s {
			r := rand.New(rand.NewPCG(2, uint64(k)))
			x, b, y := make([]float32, k.Len()), make([]byte, k.Bytes()), make([]float32, k.Len())
			for i := range x {
				x[i] = float32(r.NormFloat64() * math.Ldexp(1, r.IntN(20)-10))
			}
			x[9] = 4 * k.most() // a scale of 4
			for i, v := range x {
				if v > x[9] || v < -x[9] {
					x[i] = 0
				}
				y[i] = float32(i)
			}
			k.Encode(b, x)
			require.Equal(t, float32(4), math.Float32frombits(binary.LittleEndian.Uint32(b)))
			require.True(t, k.Finite(b))
			k.AddDecoded(y, b, .5)
			for i, v := range x {
				q := f.nearest(float64(v / 4))
				require.Equal(t, q, b[4+i])
				require.Equal(t, float32(i)+float32(f.value(q))*2, y[i])
			}
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
				x[7] = bad
				k.Encode(b, x)
				require.False(t, k.Finite(b))
				k.Decode(y, b, .5)
				for _, v := range y {
					require.True(t, v != v)
				}
			}
			clear(x)
			x[3] = -math.Nextafter32(math.Float32frombits(k.tiny()), 0)
			k.Encode(b, x)
			require.Equal(t, make([]byte, k.Bytes()), b)
			x[3] = -math.Float32frombits(k.tiny())
			k.Encode(b, x)
			k.Decode(y, b, 1)
			require.InEpsilon(t, x[3], y[3], 1e-6)
		}
	})
}
