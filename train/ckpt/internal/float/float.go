// Package float converts elements of one type of floating point into another.
package float

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/ccl"
)

// A Float is a type of floating point: how an element is read, and written.
type Float struct {
	Get func(b []byte) float64
	Put func(b []byte, x float64)
}

var le = binary.LittleEndian

// Types are those that are converted into each other, by their names in safetensors. What does not fit is rounded to
// nearest even, once, and what is too large becomes infinite.
var Types = map[string]Float{
	"F64": {func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) },
		func(b []byte, x float64) { le.PutUint64(b, math.Float64bits(x)) }},
	"F32": {func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) },
		func(b []byte, x float64) { le.PutUint32(b, math.Float32bits(float32(x))) }},
	"F16": {func(b []byte) float64 { return float64(ccl.Float16(le.Uint16(b)).Float32()) },
		func(b []byte, x float64) { le.PutUint16(b, uint16(ccl.ToFloat16(toOdd(x)))) }},
	"BF16": {func(b []byte) float64 { return float64(ccl.BFloat16(le.Uint16(b)).Float32()) },
		func(b []byte, x float64) { le.PutUint16(b, uint16(ccl.ToBFloat16(toOdd(x)))) }},
}

// toOdd is x as float32, where that is not exact the neighbor whose last bit is 1. What is then
// rounded to a type with at least two bits less is x rounded once, since no middle between two of
// its numbers is hit by chance (Boldo and Melquiond 2008).
func toOdd(x float64) float32 {
	f := float32(x)
	if math.IsNaN(x) || float64(f) == x {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		b-- // towards 0
	}
	return math.Float32frombits(b | 1)
}

// Convertible reports whether one type can be read as the other.
func Convertible(from, to string) bool {
	_, a := Types[from]
	_, b := Types[to]
	return a && b
}
