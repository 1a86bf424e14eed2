package ckpt

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/ccl"
)

// float is a type of floating point: how an element is read, and written.
type float struct {
	get func(b []byte) float64
	put func(b []byte, x float64)
}

var le = binary.LittleEndian

// floats are those that Load converts into each other. What does not fit is rounded to nearest
// even, once, and what is too large becomes infinite.
var floats = map[string]float{
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

// convertible reports whether one type can be read as the other.
func convertible(from, to string) bool {
	_, a := floats[from]
	_, b := floats[to]
	return a && b
}

// chunk is how many bytes are converted at once.
const chunk = 64 << 10

// as does a read, and converts what it reads.
func (p *partFile) as(r read) error {
	if r.from == r.to {
		return p.read(r.dst, r.at)
	}
	if p.raw == nil {
		p.raw = make([]byte, chunk)
	}
	from, to := floats[r.from], floats[r.to]
	k, n := dtypes[r.from], dtypes[r.to]
	for dst, at := r.dst, r.at; len(dst) > 0; {
		raw := p.raw[:min(chunk/k, len(dst)/n)*k]
		if err := p.read(raw, at); err != nil {
			return err
		}
		at += int64(len(raw))
		for ; len(raw) > 0; raw, dst = raw[k:], dst[n:] {
			to.put(dst, from.get(raw))
		}
	}
	return nil
}
