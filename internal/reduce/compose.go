package reduce

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// What is the same on every level, or follows from a level's other kernels: 8-bit floats; the operators
// on bits; bool, of which the least is and, and the greatest or; and complex numbers, whose sums are those
// of twice as many floats.

// composed adds to each level what is made of its other kernels.
func composed(levels []*level) []*level {
	for _, l := range levels {
		l.compose()
	}
	return levels
}

func (l *level) compose() {
	for t, fs := range map[op.Type]bitwise{
		op.Int8: bitwiseOf[uint8](), op.Uint8: bitwiseOf[uint8](), op.Int16: bitwiseOf[uint16](),
		op.Uint16: bitwiseOf[uint16](),
		op.Int32:  bitwiseOf[uint32](), op.Uint32: bitwiseOf[uint32](), op.Int64: bitwiseOf[uint64](),
		op.Uint64: bitwiseOf[uint64](),
	} {
		for i, f := range fs {
			l.set(t, op.BAnd+op.Op(i), f)
		}
	}
	for _, t := range []op.Type{op.Float8E4M3, op.Float8E5M2} {
		f := format8Of(t)
		l.reduce[t] = f.reductions()
		l.stream[t], l.scale[t], l.sumAll[t] = l.reduce[t], f.scale, f.sumAll
	}
	for o, from := range map[op.Op]op.Op{op.Min: op.BAnd, op.Max: op.BOr, op.BAnd: op.BAnd, op.BOr: op.BOr,
		op.BXor: op.BXor} {
		l.set(op.Bool, o, l.reduce[op.Uint8][from])
	}
	for t, part := range map[op.Type]op.Type{op.Complex64: op.Float32, op.Complex128: op.Float64} {
		for _, o := range []op.Op{op.Sum, op.Avg} {
			l.reduce[t][o], l.stream[t][o] = twice(l.reduce[part][o]), twice(l.stream[part][o])
		}
		if both := l.both[part]; both != nil {
			l.both[t] = func(dst, other, a, b unsafe.Pointer, n int) { both(dst, other, a, b, 2*n) }
		}
		scale := l.scale[part]
		l.scale[t] = func(dst unsafe.Pointer, n int, ranks int) { scale(dst, 2*n, ranks) }
	}
}

// set gives l one kernel for both sorts of stores.
func (l *level) set(t op.Type, o op.Op, f Func) { l.reduce[t][o], l.stream[t][o] = f, f }

// twice is f on twice as many elements.
func twice(f Func) Func {
	return func(dst, a, b unsafe.Pointer, n int) { f(dst, a, b, 2*n) }
}

// bitwise are the kernels of BAnd, BOr and BXor.
type bitwise [op.BXor - op.BAnd + 1]Func

func bitwiseOf[T unsigned]() bitwise { return bitwise{and[T], or[T], xor[T]} }

func and[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = x[0]&y[0], x[1]&y[1], x[2]&y[2], x[3]&y[3]
		d[4], d[5], d[6], d[7] = x[4]&y[4], x[5]&y[5], x[6]&y[6], x[7]&y[7]
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func or[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = x[0]|y[0], x[1]|y[1], x[2]|y[2], x[3]|y[3]
		d[4], d[5], d[6], d[7] = x[4]|y[4], x[5]|y[5], x[6]|y[6], x[7]|y[7]
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func xor[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := vectors[T](dst, a, b, n)
	for len(d) >= 8 && len(x) >= 8 && len(y) >= 8 {
		d[0], d[1], d[2], d[3] = x[0]^y[0], x[1]^y[1], x[2]^y[2], x[3]^y[3]
		d[4], d[5], d[6], d[7] = x[4]^y[4], x[5]^y[5], x[6]^y[6], x[7]^y[7]
		d, x, y = d[8:], x[8:], y[8:]
	}
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}
