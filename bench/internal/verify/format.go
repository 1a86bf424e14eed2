package verify

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/goccl/goccl/ccl"
)

// format is how a type's bits are read. exp is 0 for an integer. It is written
// here once more, and not taken from ccl, so that the check shares no code with
// what it checks.
type format struct {
	bits     int
	signed   bool
	exp, man int // bits of a float's exponent and of its stored mantissa
}

func formatOf(t ccl.Type) format {
	switch t {
	case ccl.TypeInt8, ccl.TypeInt16, ccl.TypeInt32, ccl.TypeInt64:
		return format{bits: 8 * t.Size(), signed: true}
	case ccl.TypeFloat64:
		return format{64, true, 11, 52}
	case ccl.TypeFloat32:
		return format{32, true, 8, 23}
	case ccl.TypeFloat16:
		return format{16, true, 5, 10}
	case ccl.TypeBFloat16:
		return format{16, true, 8, 7}
	case ccl.TypeFloat8E4M3:
		return format{8, true, 4, 3}
	case ccl.TypeFloat8E5M2:
		return format{8, true, 5, 2}
	}
	return format{bits: 8 * t.Size()}
}

func (f format) float() bool { return f.exp > 0 }

// bias is what is added to a float's exponent.
func (f format) bias() int { return 1<<(f.exp-1) - 1 }

// mask has all bits of an element set.
func (f format) mask() uint64 { return ^uint64(0) >> (64 - f.bits) }

// encode gives the bits of v, and whether they are v exactly. Normal numbers and
// zero are enough here.
func (f format) encode(v float64) (bits uint64, exact bool) {
	if v == 0 {
		return 0, true
	}
	if v < 0 {
		bits = 1 << (f.bits - 1)
	}
	frac, e := math.Frexp(math.Abs(v)) // in [0.5, 1)
	m := math.Ldexp(frac, f.man+1)
	e += f.bias() - 1
	if m != math.Trunc(m) || e < 1 || e > 2*f.bias() {
		return 0, false
	}
	return bits | uint64(e)<<f.man | uint64(m)&(1<<f.man-1), true
}

// decode is the value of a float's bits. It reads the highest exponent as any
// other: what the patterns write never has it.
func (f format) decode(bits uint64) float64 {
	e := int(bits>>f.man) & (1<<f.exp - 1)
	m := float64(bits & (1<<f.man - 1))
	if e == 0 {
		e = 1
	} else {
		m += float64(uint64(1) << f.man)
	}
	v := math.Ldexp(m, e-f.bias()-f.man)
	if bits>>(f.bits-1) != 0 {
		v = -v
	}
	return v
}

// integer is an integer's bits, sign-extended if its type has a sign.
func (f format) integer(bits uint64) int64 {
	if f.signed {
		return int64(bits<<(64-f.bits)) >> (64 - f.bits)
	}
	return int64(bits)
}

// Format writes an element for people: its value, and its bits where the value
// alone could mislead.
func Format(t ccl.Type, bits uint64) string {
	f := formatOf(t)
	switch {
	case f.float() && int(bits>>f.man)&(1<<f.exp-1) == 1<<f.exp-1:
		return "bits 0x" + strconv.FormatUint(bits, 16) // infinite, a NaN, or large in f8e4m3
	case f.float():
		return strconv.FormatFloat(f.decode(bits), 'g', -1, 64)
	case f.signed:
		return strconv.FormatInt(f.integer(bits), 10)
	}
	return strconv.FormatUint(bits, 10)
}

// put and get move one element of size bytes between memory and its bits. ccl's
// slices are in the machine's order, which is little-endian on every platform that
// Go and ccl share but a few; NativeEndian is right on all.
func put(b []byte, size int, bits uint64) {
	switch size {
	case 1:
		b[0] = byte(bits)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(bits))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(bits))
	default:
		binary.NativeEndian.PutUint64(b, bits)
	}
}

func get(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}
