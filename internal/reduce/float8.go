package reduce

import (
	"math"
	"sync"

	"github.com/goccl/goccl/internal/op"
)

// The largest numbers of 8-bit floats (OCP OFP8): E4M3 has no infinity, and E5M2 keeps its own for what is read.
const mostE4M3, mostE5M2 = 448, 57344

// The bits of an 8-bit float without its sign, and of its NaN as conversions make it.
const signless8, nan8 = 0x7f, 0x7f

// E4M3ToF32 is the float32 of an 8-bit float of 4 exponent and 3 mantissa bits, exactly.
func E4M3ToF32(b uint8) float32 {
	u := uint32(b&signless8) << 20
	if b&signless8 == nan8 {
		return math.Float32frombits(nanBits | uint32(b&0x80)<<24)
	}
	// the factor moves the exponent's bias, for denormals too
	return math.Float32frombits(math.Float32bits(math.Float32frombits(u)*0x1p120) | uint32(b&0x80)<<24)
}

// E5M2ToF32 is the float32 of an 8-bit float of 5 exponent and 2 mantissa bits, exactly: it is the upper half of a
// binary16.
func E5M2ToF32(b uint8) float32 { return F16ToF32(uint16(b) << 8) }

// F32ToE4M3 is the 8-bit float that is nearest to f, the even one of two. What is beyond the largest becomes that, an
// infinity too (OCP's saturating conversion, NVIDIA's satfinite); a NaN is a NaN.
func F32ToE4M3(f float32) uint8 { return e4m3.encode(f) }

// F32ToE5M2 is F32ToE4M3 for 5 exponent and 2 mantissa bits.
func F32ToE5M2(f float32) uint8 { return e5m2.encode(f) }

// format8 is a sort of 8-bit float.
type format8 struct {
	mantissa, bias uint32
	most           float32       // the largest number
	above          uint8         // what is above, the sign aside, is a NaN
	values         *[256]float32 // of its numbers
	sums, prods    pairs
	codes          func() *[1 << 16]uint8 // encode, by oddUpper; from its first use on
}

var (
	e4m3 = newFormat8(format8{mantissa: 3, bias: 7, most: mostE4M3, above: 0x7e, values: &float8Values[0]})
	e5m2 = newFormat8(format8{mantissa: 2, bias: 15, most: mostE5M2, above: 0x7c, values: &float8Values[1]})
)

func newFormat8(f format8) *format8 {
	f.sums = f.table(func(x, y float32) float32 { return x + y })
	f.prods = f.table(func(x, y float32) float32 { return x * y })
	f.codes = sync.OnceValue(func() *[1 << 16]uint8 {
		t := new([1 << 16]uint8)
		for i := range t {
			t[i] = f.encode(math.Float32frombits(uint32(i) << 16))
		}
		return t
	})
	return &f
}

// oddUpper is the upper half of x's bits, rounded to odd: what is cut off sets the last bit. So it has more bits than
// an 8-bit float by two and more, of which the last says whether anything follows, and is rounded as x is.
func oddUpper(x float32) uint16 {
	u := math.Float32bits(x)
	return uint16(u>>16 | (u&0xffff+0xffff)>>16)
}

// format8Of is that of t, which is an 8-bit float.
func format8Of(t op.Type) *format8 {
	if t == op.Float8E5M2 {
		return e5m2
	}
	return e4m3
}

// encode is x rounded to f: see F32ToE4M3.
func (f *format8) encode(x float32) uint8 {
	u := math.Float32bits(x)
	sign := uint8(u >> 24 & 0x80)
	u &= signless
	if u > infinityBits {
		return sign | nan8
	}
	u = min(u, math.Float32bits(f.most))
	cut := 23 - f.mantissa
	if least := (128 - f.bias) << 23; u < least { // denormal: the unit in the last place of unit is theirs
		unit := math.Float32frombits((128 - f.bias + cut) << 23)
		return sign | uint8(math.Float32bits(math.Float32frombits(u)+unit)-math.Float32bits(unit))
	}
	return sign | uint8((u-(127-f.bias)<<23+1<<(cut-1)-1+u>>cut&1)>>cut)
}

// float8Values are the numbers of all 8-bit floats: E4M3 and E5M2.
var float8Values = func() (values [2][256]float32) {
	for b := range 256 {
		values[0][b], values[1][b] = E4M3ToF32(uint8(b)), E5M2ToF32(uint8(b))
	}
	return values
}()
