package quant

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Codec is what an element of float32 becomes on the wire.
type Codec uint8

const (
	// None sends float32 by ccl's AllReduce.
	None Codec = iota
	// BFloat16 sends 16 bits: the error of each rounding is at most 1/256 of the element.
	BFloat16
	// Int8 sends 8.125 bits: blocks of 256 elements as integers from -127 to 127, with a scale.
	Int8
	// Int4 sends 4.5 bits: blocks of 64 elements as integers from -7 to 7, with a scale.
	Int4
	// E4M3 sends 8.125 bits: blocks of 256 elements as floats of 4 and 3 bits, with a scale. The error of each is at
	// most 1/16 of the element, if that is at least 1/28,672 of the largest in its block.
	E4M3
	// E5M2 is E4M3 with floats of 5 and 2 bits, for blocks whose elements are further apart: at most 1/8, from
	// 1/939,524,096 of the largest on.
	E5M2
	codecs
)

var names = [codecs]string{"none", "bf16", "int8", "int4", "e4m3", "e5m2"}

// String returns the name of k, which Parse takes.
func (k Codec) String() string {
	if k >= codecs {
		return fmt.Sprintf("Codec(%d)", uint8(k))
	}
	return names[k]
}

// Parse returns the Codec of a name: none, bf16, int8, int4, e4m3 or e5m2.
func Parse(name string) (Codec, error) {
	for k, n := range names {
		if n == name {
			return Codec(k), nil
		}
	}
	return 0, fmt.Errorf("quant: %q is no codec; there are %s", name, strings.Join(names[:], ", "))
}

// blocks is the code of what has blocks.
func (k Codec) blocks() reduce.Blocks {
	return [...]reduce.Blocks{Int8: reduce.Int8Blocks, Int4: reduce.Int4Blocks, E4M3: reduce.E4M3Blocks,
		E5M2: reduce.E5M2Blocks}[k]
}

// align is what the elements of a shard are a multiple of.
func (k Codec) align() int {
	if k == BFloat16 {
		return 1
	}
	return k.blocks().Len()
}

// bytes is how many n elements take, whole blocks of them.
func (k Codec) bytes(n int) int {
	if k == BFloat16 {
		return 2 * n
	}
	return n / k.blocks().Len() * k.blocks().Bytes()
}

func (k Codec) encode(dst []byte, x []float32) {
	if k == BFloat16 {
		reduce.FromFloat32(op.BFloat16, words(dst), x)
		return
	}
	k.blocks().Encode(dst, x)
}

// decode sets x to what src has, times by.
func (k Codec) decode(x []float32, src []byte, by float32) {
	if k == BFloat16 {
		for i, h := range words(src) {
			x[i] = reduce.BF16ToF32(h) * by
		}
		return
	}
	k.blocks().Decode(x, src, by)
}

// add adds to x what src has, times by.
func (k Codec) add(x []float32, src []byte, by float32) {
	if k == BFloat16 {
		for i, h := range words(src) {
			x[i] += float32(reduce.BF16ToF32(h) * by) // converted, so that no compiler fuses it with the addition
		}
		return
	}
	k.blocks().AddDecoded(x, src, by)
}

// finite reports whether all that src has is finite.
func (k Codec) finite(src []byte) bool {
	if k != BFloat16 {
		return k.blocks().Finite(src)
	}
	const exponent = 0x7f80
	for _, h := range words(src) {
		if h&exponent == exponent {
			return false
		}
	}
	return true
}

// words is b as numbers of 16 bits; b begins at an even address.
func words(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

// allFinite reports whether all of x is finite.
func allFinite(x []float32) bool {
	s := reduce.SumSquares(x)
	return !math.IsNaN(s) && !math.IsInf(s, 0)
}
