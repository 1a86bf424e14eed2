package hlo

import (
	"fmt"
	"math"
	"slices"
)

// Iota counts 0, 1, 2 along an axis.
func (f *Func) Iota(t Type, axis int, dims ...int) *Value {
	if f.check(t, dims); axis < 0 || axis >= len(dims) {
		f.fail("Iota: axis %d of %v", axis, dims)
	}
	return f.op("stablehlo.iota", fmt.Sprintf("{iota_dimension = %d : i64}", axis), t, slices.Clone(dims), nil)
}

// To broadcasts v to these dimensions.
func (v *Value) To(dims ...int) *Value {
	if slices.Equal(v.dims, dims) {
		return v
	}
	off := len(dims) - len(v.dims)
	at, sum := []int{}, []int{}
	for i := range dims {
		if i < off || v.dims[i-off] != dims[i] {
			sum = append(sum, i)
		}
		if i >= off {
			at = append(at, i)
			if d := v.dims[i-off]; d != 1 && d != dims[i] {
				off = -1
				break
			}
		}
	}
	if off < 0 {
		v.f.fail("To: %v cannot be broadcast to %v", v.dims, dims)
		return v
	}
	return v.f.op("stablehlo.broadcast_in_dim", "{broadcast_dimensions = "+array(at)+"}", v.t, slices.Clone(dims),
		func(d *Value) []*Value { return []*Value{d.Sum(sum...).Reshape(v.dims...)} }, v)
}

// merged returns the dimensions that values of a and b have together: an axis that one lacks, or
// has with the length 1, is the other's.
func merged(a, b []int) []int {
	if len(b) > len(a) {
		a, b = b, a
	}
	dims := slices.Clone(a)
	for i, d := range b {
		if k := len(a) - len(b) + i; dims[k] == 1 {
			dims[k] = d
		}
	}
	return dims
}

// together are v and b with the same dimensions.
func (v *Value) together(op string, b *Value) (x, y *Value) {
	if !v.fits(op, b) {
		return v, v
	}
	dims := merged(v.dims, b.dims)
	if x, y = v.To(dims...), b.To(dims...); v.t != b.t && v.f.err == nil {
		v.f.fail("%s: %s and %s", op, v.text(), b.text())
	}
	return x, y
}

// two writes an operation on two values of one shape. back may be nil.
func (v *Value) two(op string, b *Value, back func(d, x, y, out *Value) []*Value) *Value {
	x, y := v.together(op, b)
	var out *Value
	var g Gradient
	if back != nil {
		g = func(d *Value) []*Value { return back(d, x, y, out) }
	}
	out = v.f.op("stablehlo."+op, "", x.t, x.dims, g, x, y)
	return out
}

// Add is v + b.
func (v *Value) Add(b *Value) *Value {
	return v.two("add", b, func(d, _, _, _ *Value) []*Value { return []*Value{d, d} })
}

// Sub is v - b.
func (v *Value) Sub(b *Value) *Value {
	return v.two("subtract", b, func(d, _, _, _ *Value) []*Value { return []*Value{d, d.Neg()} })
}

// Mul is v * b, element by element.
func (v *Value) Mul(b *Value) *Value {
	return v.two("multiply", b, func(d, x, y, _ *Value) []*Value { return []*Value{d.Mul(y), d.Mul(x)} })
}

// Div is v / b.
func (v *Value) Div(b *Value) *Value {
	return v.two("divide", b, func(d, _, y, out *Value) []*Value { return []*Value{d.Div(y), d.Mul(out).Div(y).Neg()} })
}

// Min is the smaller of v and b, NaN if one is. Where they are equal, the gradient is v's.
func (v *Value) Min(b *Value) *Value { return v.limit("minimum", "LE", b) }

// Max is the larger of v and b, NaN if one is. Where they are equal, the gradient is v's.
func (v *Value) Max(b *Value) *Value { return v.limit("maximum", "GE", b) }

// limit is Min or Max. XLA's plugin for CPUs loses a NaN in them, so that it is put back.
func (v *Value) limit(op, keeps string, b *Value) *Value {
	out := v.two(op, b, func(d, x, y, _ *Value) []*Value { return choose(x.Cmp(keeps, y), d) })
	if v.t.integer() || v.f.err != nil {
		return out
	}
	x, y := Stop(v), Stop(b)
	return If(x.Cmp("NE", x).Or(y.Cmp("NE", y)), x.Add(y), out)
}

// Clamp is v, at least lo and at most hi.
func (v *Value) Clamp(lo, hi float64) *Value {
	return v.Max(v.f.Const(v.t, lo)).Min(v.f.Const(v.t, hi))
}

// choose has d flow to the first where c is true, else to the second.
func choose(c, d *Value) []*Value {
	zero := d.f.Const(d.t, 0)
	return []*Value{If(c, d, zero), If(c, zero, d)}
}

// Pow is v to the power b. The gradient of v is 0 where b is 0; that of b is 0 where v is 0 and b is not
// negative, and is for positive v elsewhere.
func (v *Value) Pow(b *Value) *Value {
	return v.two("power", b, func(d, x, y, out *Value) []*Value {
		zero := d.f.Const(d.t, 0)
		still := x.Cmp("EQ", zero).And(y.Cmp("GE", zero))
		base := d.Mul(y).Mul(x.Pow(y.AddC(-1)))
		return []*Value{If(y.Cmp("EQ", zero), zero, base), If(still, zero, d.Mul(out).Mul(x.Log()))}
	})
}

// AddC is v + x.
func (v *Value) AddC(x float64) *Value { return v.Add(v.f.Const(v.t, x)) }

// MulC is v * x.
func (v *Value) MulC(x float64) *Value { return v.Mul(v.f.Const(v.t, x)) }

// one writes an operation on one value.
func (v *Value) one(op string, back func(d, out *Value) *Value) *Value {
	var out *Value
	out = v.f.op(op, "", v.t, v.dims, func(d *Value) []*Value { return []*Value{back(d, out)} }, v)
	return out
}

// Neg is -v.
func (v *Value) Neg() *Value {
	return v.one("stablehlo.negate", func(d, _ *Value) *Value { return d.Neg() })
}

// Abs is the absolute value, with the gradient 0 where v is 0.
func (v *Value) Abs() *Value {
	return v.one("stablehlo.abs", func(d, _ *Value) *Value {
		return d.Mul(v.Sign())
	})
}

// Sign is -1, 0 or 1, as v is less than, equal to or greater than 0. It, Floor, Ceil and Round have no gradient.
func (v *Value) Sign() *Value { return v.f.op("stablehlo.sign", "", v.t, v.dims, nil, v) }

// Floor is the largest whole number that is not more.
func (v *Value) Floor() *Value { return v.f.op("stablehlo.floor", "", v.t, v.dims, nil, v) }

// Ceil is the smallest whole number that is not less.
func (v *Value) Ceil() *Value { return v.f.op("stablehlo.ceil", "", v.t, v.dims, nil, v) }

// Round is the nearest whole number, of two the even one.
func (v *Value) Round() *Value {
	return v.f.op("stablehlo.round_nearest_even", "", v.t, v.dims, nil, v)
}

// Exp is e to the power v.
func (v *Value) Exp() *Value {
	return v.one("stablehlo.exponential", func(d, out *Value) *Value { return d.Mul(out) })
}

// Log is the natural logarithm.
func (v *Value) Log() *Value {
	return v.one("stablehlo.log", func(d, _ *Value) *Value { return d.Div(v) })
}

// Expm1 is e to the power v, minus 1, exact also for small v.
func (v *Value) Expm1() *Value {
	return v.one("stablehlo.exponential_minus_one", func(d, out *Value) *Value { return d.Mul(out).Add(d) })
}

// Log1p is the natural logarithm of 1 + v, exact also for small v.
func (v *Value) Log1p() *Value {
	return v.one("stablehlo.log_plus_one", func(d, _ *Value) *Value { return d.Div(v.AddC(1)) })
}

// Sqrt is the square root.
func (v *Value) Sqrt() *Value {
	return v.one("stablehlo.sqrt", func(d, out *Value) *Value { return d.MulC(0.5).Div(out) })
}

// Rsqrt is 1 / Sqrt.
func (v *Value) Rsqrt() *Value {
	return v.one("stablehlo.rsqrt", func(d, out *Value) *Value { return d.Mul(out).Mul(out).Mul(out).MulC(-0.5) })
}

// Tanh is the hyperbolic tangent.
func (v *Value) Tanh() *Value {
	return v.one("stablehlo.tanh", func(d, out *Value) *Value { return d.Sub(d.Mul(out).Mul(out)) })
}

// Logistic is 1 / (1 + exp(-v)).
func (v *Value) Logistic() *Value {
	return v.one("stablehlo.logistic", func(d, out *Value) *Value { return d.Mul(out).Sub(d.Mul(out).Mul(out)) })
}

// Sin is the sine.
func (v *Value) Sin() *Value {
	return v.one("stablehlo.sine", func(d, _ *Value) *Value { return d.Mul(v.Cos()) })
}

// Cos is the cosine.
func (v *Value) Cos() *Value {
	return v.one("stablehlo.cosine", func(d, _ *Value) *Value { return d.Mul(v.Sin()).Neg() })
}

// Erf is the error function.
func (v *Value) Erf() *Value {
	return v.one("chlo.erf", func(d, _ *Value) *Value { return d.Mul(v.Mul(v).Neg().Exp()).MulC(2 / math.Sqrt(math.Pi)) })
}

// As converts v to the type t.
func (v *Value) As(t Type) *Value {
	if v.t == t {
		return v
	}
	v.f.check(t, nil)
	var back Gradient
	if !t.integer() && !v.t.integer() {
		back = func(d *Value) []*Value { return []*Value{d.As(v.t)} }
	}
	return v.f.op("stablehlo.convert", "", t, v.dims, back, v)
}

// Cmp compares v and b, by EQ, NE, GE, GT, LE or LT. It has no gradient.
func (v *Value) Cmp(direction string, b *Value) *Value {
	if !slices.Contains([]string{"EQ", "NE", "GE", "GT", "LE", "LT"}, direction) {
		v.f.fail("Cmp: %q is no comparison", direction)
	}
	x, y := v.together("Cmp", b)
	return v.f.op("stablehlo.compare", "{comparison_direction = #stablehlo<comparison_direction "+direction+">}", Bool,
		x.dims, nil, x, y)
}

// And is true where v and b are, or has the bits that both integers have. It, Or and Not have no gradient.
func (v *Value) And(b *Value) *Value { return v.bitwise("and", b) }

// Or is true where v or b is, or has the bits that one of the integers has.
func (v *Value) Or(b *Value) *Value { return v.bitwise("or", b) }

// Not is true where v is not, or has the bits that an integer does not have.
func (v *Value) Not() *Value {
	if v.integers("not") {
		return v.f.op("stablehlo.not", "", v.t, v.dims, nil, v)
	}
	return v
}

func (v *Value) bitwise(op string, b *Value) *Value {
	if !v.integers(op) {
		return v
	}
	return v.two(op, b, nil)
}

func (v *Value) integers(op string) bool {
	if !v.t.integer() {
		v.f.fail("%s: of %s", op, v.text())
	}
	return v.t.integer()
}

// If is a where c is true, else b.
func If(c, a, b *Value) *Value {
	if !c.fits("If", a, b) {
		return a
	}
	a, b = a.together("If", b)
	if c.t != Bool {
		c.f.fail("If: the condition is %s", c.text())
		return a
	}
	dims := merged(c.dims, a.dims)
	c, a, b = c.To(dims...), a.To(dims...), b.To(dims...)
	return a.f.op("stablehlo.select", "", a.t, a.dims, func(d *Value) []*Value {
		return append([]*Value{nil}, choose(c, d)...)
	}, c, a, b)
}
