package hlo

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Const is a scalar. For a type of floating point x may be infinite, or NaN.
func (f *Func) Const(t Type, x float64) *Value {
	f.check(t, nil)
	return f.constant(t, f.literal(t, x), []int{})
}

// Array is a constant array of these dimensions, whose elements are x, the last axis fastest.
func (f *Func) Array(t Type, x []float64, dims ...int) *Value {
	if f.check(t, dims); product(dims) != len(x) {
		f.fail("Array: %d elements for %v", len(x), dims)
	}
	at := 0
	var text func(dims []int) string
	text = func(dims []int) string {
		if len(dims) == 0 {
			at++
			return f.literal(t, x[at-1])
		}
		var parts []string
		for range dims[0] {
			parts = append(parts, text(dims[1:]))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	s := ""
	if f.err == nil && len(x) > 0 {
		s = text(dims)
	}
	return f.constant(t, s, slices.Clone(dims))
}

// zeros are as many as v has elements.
func (f *Func) zeros(v *Value) *Value { return f.Const(v.t, 0).To(v.dims...) }

func (f *Func) constant(t Type, s string, dims []int) *Value {
	return f.op("stablehlo.constant", "{value = dense<"+s+"> : "+typeText(t, dims)+"}", t, dims, nil)
}

// bits are those of infinity and of NaN.
var bits = map[Type][3]string{
	F8E4M3: {"", "", "0x7F"}, F8E5M2: {"0x7C", "0xFC", "0x7F"},
	F16: {"0x7C00", "0xFC00", "0x7E00"}, BF16: {"0x7F80", "0xFF80", "0x7FC0"},
	F32: {"0x7F800000", "0xFF800000", "0x7FC00000"},
	F64: {"0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"},
}

// literal is x as an element of a type.
func (f *Func) literal(t Type, x float64) string {
	special := -1
	switch {
	case math.IsInf(x, 1):
		special = 0
	case math.IsInf(x, -1):
		special = 1
	case math.IsNaN(x):
		special = 2
	}
	switch {
	case f.err != nil || t == Bool:
		return fmt.Sprint(x != 0)
	case special >= 0 && bits[t][special] == "":
		f.fail("Const: %v is no %s", x, t)
		return "0"
	case special >= 0:
		return bits[t][special]
	case t[0] == 'u' && x >= 1<<64:
		return fmt.Sprint(uint64(math.MaxUint64))
	case t[0] == 'u' && x >= 1<<63:
		return fmt.Sprint(uint64(x))
	case t.integer() && x >= 1<<63:
		return fmt.Sprint(math.MaxInt64)
	case t.integer():
		return fmt.Sprint(int64(x))
	}
	return fmt.Sprintf("%.17e", x)
}

// least is at most what any number of a type is.
func (t Type) least() float64 {
	switch {
	case !t.integer():
		return math.Inf(-1)
	case t[0] == 'u' || t == Bool:
		return 0
	}
	return -math.Exp2(float64(t.size() - 1))
}

// largest of 64 bits is more than there is, which literal mends: float64 has no such number.
func (t Type) largest() float64 {
	switch {
	case !t.integer():
		return math.Inf(1)
	case t == Bool:
		return 1
	case t[0] == 'u':
		return math.Exp2(float64(t.size())) - 1
	}
	return math.Exp2(float64(t.size()-1)) - 1
}

// size is the number of bits.
func (t Type) size() (n int) {
	fmt.Sscanf(strings.TrimLeft(string(t), "uibf"), "%d", &n)
	return n
}
