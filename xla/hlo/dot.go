package hlo

import (
	"fmt"
	"slices"
)

// side is one operand of a product: its axes that are batches, that are contracted, and the rest.
type side struct {
	v                     *Value
	batch, rest, contract []int
}

func newSide(v *Value, contract, batch []int) side {
	s := side{v: v, batch: batch, contract: contract}
	for i := range v.dims {
		if !slices.Contains(contract, i) && !slices.Contains(batch, i) {
			s.rest = append(s.rest, i)
		}
	}
	return s
}

func (s side) lengths(axes []int) (dims []int) {
	for _, x := range axes {
		dims = append(dims, s.v.dims[x])
	}
	return dims
}

// Dot is the product of a and b: axes contractA of a meet contractB of b and vanish; axes batchA
// and batchB run side by side. The result has the batch axes, the rest of a, the rest of b. A
// product of matrices is Dot(a, b, []int{1}, []int{0}, nil, nil).
func Dot(a, b *Value, contractA, contractB, batchA, batchB []int) *Value {
	return DotAs(a.t, a, b, contractA, contractB, batchA, batchB)
}

// DotAs is Dot with sums and a result of the type t. Its gradients have the type of a and b, and are products
// in it; those of 8 bits are to be given by With, since their gradients need another type and scales.
func DotAs(t Type, a, b *Value, contractA, contractB, batchA, batchB []int) *Value {
	if !a.fits("Dot", b) || !a.axis("Dot", slices.Concat(contractA, batchA)...) ||
		!b.axis("Dot", slices.Concat(contractB, batchB)...) {
		return a
	}
	x, y := newSide(a, contractA, batchA), newSide(b, contractB, batchB)
	if a.t != b.t || !slices.Equal(x.lengths(x.contract), y.lengths(y.contract)) ||
		!slices.Equal(x.lengths(x.batch), y.lengths(y.batch)) {
		a.f.fail("Dot: %s and %s, axes %v and %v contracted, batches %v and %v", a.text(), b.text(), contractA, contractB,
			batchA, batchB)
		return a
	}
	dims := slices.Concat([]int{}, x.lengths(x.batch), x.lengths(x.rest), y.lengths(y.rest))
	return a.f.op("stablehlo.dot_general",
		fmt.Sprintf("{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [%s], rhs_batching_dimensions = [%s], "+
			"lhs_contracting_dimensions = [%s], rhs_contracting_dimensions = [%s]>%s}", list(batchA), list(batchB),
			list(contractA), list(contractB), a.f.precision()), t, dims,
		func(d *Value) []*Value {
			if a.t[:2] == "f8" {
				a.f.fail("Grad: of a product of %s: give it a gradient by With", a.t)
				return make([]*Value, 2)
			}
			d = d.As(a.t)
			n := len(batchA)
			return []*Value{x.gradient(d, y, n+len(x.rest)), y.gradient(d, x, n)}
		}, a, b)
}

// precision is the attribute of a product.
func (f *Func) precision() string {
	switch f.Precision {
	case "":
		return ""
	case "DEFAULT", "HIGH", "HIGHEST":
		p := "#stablehlo<precision " + f.Precision + ">"
		return ", precision_config = [" + p + ", " + p + "]"
	}
	f.fail("%q is no precision: there are DEFAULT, HIGH, HIGHEST", f.Precision)
	return ""
}

// gradient is that of s.v in a product with o, whose rest begins at axis from of d: a product of d
// and o. Of the two orders of operands it takes the one whose axes come out in s.v's order, if
// there is one, so that nothing is transposed.
func (s side) gradient(d *Value, o side, from int) *Value {
	order := slices.Sorted(slices.Values(o.contract)) // o's contracted axes in the result: in order
	places := func(rest, contract int) []int {        // by axis of s.v: which axis of the result it is
		at := make([]int, len(s.v.dims))
		for i, k := range s.batch {
			at[k] = i
		}
		for i, k := range s.rest {
			at[k] = rest + i
		}
		for i, k := range s.contract {
			at[k] = contract + slices.Index(order, o.contract[i])
		}
		return at
	}
	n := len(s.batch)
	if slices.IsSorted(places(n+len(s.contract), n)) {
		return Dot(o.v, d, o.rest, count(from, len(o.rest)), o.batch, count(0, n))
	}
	return Dot(d, o.v, count(from, len(o.rest)), o.rest, count(0, n), o.batch).Perm(places(n, n+len(s.rest))...)
}
