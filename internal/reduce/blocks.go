package reduce

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Blocks is a code for blocks of float32 in few bits. The elements of a block share a scale, which
// comes first, as float32 in little-endian order: the largest magnitude, divided by the code's
// largest number. Each element follows as the number of the code that is nearest to element/scale,
// the even one of two.
//
// A block that has a NaN or an infinity has a NaN as its scale, so all its elements are decoded as
// NaN. A block whose largest magnitude is below 2^-119, or of 8-bit floats below 2^-117 and 2^-110,
// becomes zeros.
type Blocks uint8

const (
	Int8Blocks Blocks = iota // 256 integers from -127 to 127, a byte each
	Int4Blocks               // 64 integers from -7 to 7; byte i has element i below and element i+32 above
	E4M3Blocks               // 256 floats of 4 and 3 bits, up to 448
	E5M2Blocks               // 256 floats of 5 and 2 bits, up to 57,344
	blockCodes
)

// Len is how many elements a block has.
func (k Blocks) Len() int { return [...]int{256, 64, 256, 256}[k] }

// Bytes is how many bytes a block takes.
func (k Blocks) Bytes() int { return [...]int{4 + 256, 4 + 32, 4 + 256, 4 + 256}[k] }

// most is the largest number.
func (k Blocks) most() float32 { return [...]float32{127, 7, mostE4M3, mostE5M2}[k] }

// tiny are the bits of the least magnitude that a block's largest may have. Below, the units per number, its
// inverse, could overflow, or the scale be a subnormal.
func (k Blocks) tiny() uint32 { return [...]uint32{tinyBits, tinyBits, 10 << 23, 17 << 23}[k] }

const (
	tinyBits, infinityBits, nanBits = 8 << 23, 0xff << 23, 0x7fc00000
	signless                        = 1<<31 - 1
	halfEven                        = 3 << 22 // a float32 to which one is added rounds to an integer
)

// blockEncoder encodes whole blocks; blockDecoder decodes them, times a factor.
type (
	blockEncoder func(dst, src unsafe.Pointer, blocks int)
	blockDecoder func(dst, src unsafe.Pointer, blocks int, by float32)
)

// Encode puts the blocks of x into dst, in the order of x. x has whole blocks, and dst their bytes.
func (k Blocks) Encode(dst []byte, x []float32) {
	for left := k.whole(len(dst), len(x)); left > 0; {
		n := min(left, piece/(4*k.Len()))
		callEncode(chosen.encode[k], unsafe.Pointer(&dst[0]), unsafe.Pointer(&x[0]), n)
		dst, x, left = dst[n*k.Bytes():], x[n*k.Len():], left-n
	}
}

// Decode sets x to the elements in src, times by: each is number * (scale * by).
func (k Blocks) Decode(x []float32, src []byte, by float32) { k.decode(chosen.decode[k], x, src, by) }

// AddDecoded adds to x what Decode would set it to.
func (k Blocks) AddDecoded(x []float32, src []byte, by float32) {
	k.decode(chosen.addDecoded[k], x, src, by)
}

func (k Blocks) decode(f blockDecoder, x []float32, src []byte, by float32) {
	for left := k.whole(len(src), len(x)); left > 0; {
		n := min(left, piece/(4*k.Len()))
		callDecode(f, unsafe.Pointer(&x[0]), unsafe.Pointer(&src[0]), n, by)
		src, x, left = src[n*k.Bytes():], x[n*k.Len():], left-n
	}
}

// callEncode and callDecode are not inlined: see call.
//
//go:noinline
func callEncode(f blockEncoder, dst, src unsafe.Pointer, blocks int) { f(dst, src, blocks) }

//go:noinline
func callDecode(f blockDecoder, dst, src unsafe.Pointer, blocks int, by float32) {
	f(dst, src, blocks, by)
}

// whole is how many blocks so many bytes and elements are.
func (k Blocks) whole(bytes, elements int) int {
	n := elements / k.Len()
	sameLength(elements, n*k.Len())
	sameLength(bytes, n*k.Bytes())
	return n
}

// Finite reports whether no block in src has a NaN or an infinity, nor a scale whose largest elements
// are infinite: that of the largest float32 is rounded up.
func (k Blocks) Finite(src []byte) bool {
	for ; len(src) >= k.Bytes(); src = src[k.Bytes():] {
		if top := math.Float32frombits(binary.LittleEndian.Uint32(src)) * k.most(); !(top <= math.MaxFloat32) {
			return false
		}
	}
	return true
}

// encodeSpec is the specification of Encode. Products are converted, so that no compiler fuses them
// with an addition.
func (k Blocks) encodeSpec(dst, src unsafe.Pointer, blocks int) {
	x, d := unsafe.Slice((*float32)(src), blocks*k.Len()), unsafe.Slice((*byte)(dst), blocks*k.Bytes())
	for ; len(x) > 0; x, d = x[k.Len():], d[k.Bytes():] {
		var top uint32
		for _, v := range x[:k.Len()] {
			top = max(top, math.Float32bits(v)&signless)
		}
		scale, inverse := math.Float32frombits(top)/k.most(), k.most()/math.Float32frombits(top)
		q := d[4:k.Bytes()]
		switch {
		case top >= infinityBits:
			scale = math.Float32frombits(nanBits)
			clear(q)
		case top < k.tiny():
			scale = 0
			clear(q)
		case k == Int8Blocks:
			for i := range q {
				q[i] = byte(math.Float32bits(float32(x[i]*inverse) + halfEven))
			}
		case k == E4M3Blocks, k == E5M2Blocks:
			codes := [...]*format8{e4m3, e5m2}[k-E4M3Blocks].codes()
			for i := range q {
				q[i] = codes[oddUpper(x[i]*inverse)]
			}
		default:
			for i := range q {
				q[i] = byte(math.Float32bits(float32(x[i]*inverse)+halfEven)&15 |
					math.Float32bits(float32(x[i+len(q)]*inverse)+halfEven)<<4)
			}
		}
		binary.LittleEndian.PutUint32(d, math.Float32bits(scale))
	}
}

// decodeSpec is the specification of Decode, and addSpec that of AddDecoded.
func (k Blocks) decodeSpec(dst, src unsafe.Pointer, blocks int, by float32) {
	clear(unsafe.Slice((*float32)(dst), blocks*k.Len()))
	k.addSpec(dst, src, blocks, by)
}

func (k Blocks) addSpec(dst, src unsafe.Pointer, blocks int, by float32) {
	x, d := unsafe.Slice((*float32)(dst), blocks*k.Len()), unsafe.Slice((*byte)(src), blocks*k.Bytes())
	for ; len(x) > 0; x, d = x[k.Len():], d[k.Bytes():] {
		unit := float32(math.Float32frombits(binary.LittleEndian.Uint32(d)) * by)
		q := d[4:k.Bytes()]
		switch k {
		case Int8Blocks:
			for i, v := range q {
				x[i] += float32(float32(int8(v)) * unit)
			}
		case E4M3Blocks, E5M2Blocks:
			values := &float8Values[k-E4M3Blocks]
			for i, v := range q {
				x[i] += float32(values[v] * unit)
			}
		default:
			for i, v := range q {
				x[i] += float32(float32(int8(v<<4)>>4) * unit)
				x[i+len(q)] += float32(float32(int8(v)>>4) * unit)
			}
		}
	}
}
