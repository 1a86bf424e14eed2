package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

type signed interface{ int8 | int16 | int32 | int64 }

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type integer interface{ signed | unsigned }

type float interface{ float32 | float64 }

// generic is the specification as a level.
var generic = func() *level {
	g := &level{name: "generic", copy: Copy}
	g.reduce = [op.Types][op.Ops]Func{
		op.Int8:     integers[int8](),
		op.Uint8:    integers[uint8](),
		op.Int16:    integers[int16](),
		op.Uint16:   integers[uint16](),
		op.Int32:    integers[int32](),
		op.Uint32:   integers[uint32](),
		op.Int64:    integers[int64](),
		op.Uint64:   integers[uint64](),
		op.Float16:  {sumF16, prodF16, minF16, maxF16, sumF16},
		op.BFloat16: {sumBF16, prodBF16, minBF16, maxBF16, sumBF16},
		op.Float32:  floats[float32](),
		op.Float64:  floats[float64](),
	}
	for k := range blockCodes {
		g.encode[k], g.decode[k], g.addDecoded[k] = k.encodeSpec, k.decodeSpec, k.addSpec
	}
	g.stream = g.reduce
	g.scale = [op.Types]func(unsafe.Pointer, int, int){
		op.Int8:     scaleSigned[int8],
		op.Uint8:    scaleUnsigned[uint8],
		op.Int16:    scaleSigned[int16],
		op.Uint16:   scaleUnsigned[uint16],
		op.Int32:    scaleSigned[int32],
		op.Uint32:   scaleUnsigned[uint32],
		op.Int64:    scaleInt64,
		op.Uint64:   scaleUint64,
		op.Float16:  scaleF16,
		op.BFloat16: scaleBF16,
		op.Float32:  scaleFloat[float32],
		op.Float64:  scaleFloat[float64],
	}
	g.sumAll[op.Float16], g.sumAll[op.BFloat16] = sumAllFrom(sumAllF16).whole, sumAllFrom(sumAllBF16).whole
	return g
}()

func integers[T integer]() [op.Ops]Func {
	return [op.Ops]Func{op.Sum: sum[T], op.Prod: prod[T], op.Min: minInt[T], op.Max: maxInt[T], op.Avg: sum[T]}
}

func floats[T float]() [op.Ops]Func {
	return [op.Ops]Func{op.Sum: sum[T], op.Prod: prod[T], op.Min: minFloat[T], op.Max: maxFloat[T], op.Avg: sum[T]}
}

// vectors are the n elements at each of three places.
func vectors[T any](dst, a, b unsafe.Pointer, n int) (d, x, y []T) {
	return unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n)
}

// The loops take eight elements at a time, and the rest one by one: a plain loop is
// half as fast where it happens to cross a line of code.

func sum[T integer | float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		d[4], d[5], d[6], d[7] = x[4]+y[4], x[5]+y[5], x[6]+y[6], x[7]+y[7]
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func prod[T integer | float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = x[0]*y[0], x[1]*y[1], x[2]*y[2], x[3]*y[3]
		d[4], d[5], d[6], d[7] = x[4]*y[4], x[5]*y[5], x[6]*y[6], x[7]*y[7]
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func minInt[T integer](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = min(x[0], y[0]), min(x[1], y[1]), min(x[2], y[2]), min(x[3], y[3])
		d[4], d[5], d[6], d[7] = min(x[4], y[4]), min(x[5], y[5]), min(x[6], y[6]), min(x[7], y[7])
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func maxInt[T integer](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = max(x[0], y[0]), max(x[1], y[1]), max(x[2], y[2]), max(x[3], y[3])
		d[4], d[5], d[6], d[7] = max(x[4], y[4]), max(x[5], y[5]), max(x[6], y[6]), max(x[7], y[7])
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}
