package hlo

import "slices"

// With is out with a gradient of the program's own: out counts as a function of in, and back returns what each of in
// contributes.
func With(out *Value, in []*Value, back Gradient) *Value {
	out.fits("With", in...)
	return out.f.add(&Value{name: out.name, t: out.t, dims: out.dims, in: in, back: back})
}

// Stop is v without a gradient.
func Stop(v *Value) *Value { return With(v, nil, nil) }

// Grad returns the gradients of a scalar with respect to values; zeros where it does not depend on them.
func Grad(loss *Value, of ...*Value) []*Value {
	f := loss.f
	if len(loss.dims) != 0 || loss.t.integer() {
		f.fail("Grad: of %s: it must be a scalar of floating point", loss.text())
	}
	out := slices.Clone(of)
	if !loss.fits("Grad", of...) {
		return out
	}
	order := ordered(loss, of)
	d := map[*Value]*Value{loss: f.Const(loss.t, 1)}
	for _, v := range slices.Backward(order) {
		if d[v] == nil || v.back == nil {
			continue
		}
		parts := v.back(d[v])
		if len(parts) != len(v.in) {
			f.fail("Grad: a gradient of %d parts for %d inputs", len(parts), len(v.in))
			return out
		}
		for i, g := range parts {
			switch x := v.in[i]; {
			case g == nil:
			case g.t != x.t || !slices.Equal(g.dims, x.dims):
				f.fail("Grad: a gradient of %s for %s", g.text(), x.text())
				return out
			case d[x] == nil:
				d[x] = g
			default:
				d[x] = d[x].Add(g)
			}
		}
	}
	for i, v := range of {
		if out[i] = d[v]; out[i] == nil {
			out[i] = f.zeros(v)
		}
	}
	return out
}

// ordered are the values that loss depends on and that depend on one of those of interest, each after its inputs.
func ordered(loss *Value, of []*Value) (order []*Value) {
	needed := map[*Value]bool{} // visited, and whether it depends
	for _, v := range of {
		needed[v] = true
	}
	visited := map[*Value]bool{}
	type frame struct {
		v *Value
		i int
	}
	stack := []frame{{v: loss}} // not the goroutine's: programs are deep
	visited[loss] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.i < len(top.v.in) {
			x := top.v.in[top.i]
			top.i++
			if !visited[x] {
				visited[x] = true
				stack = append(stack, frame{v: x})
			}
			continue
		}
		v := top.v
		for _, x := range v.in {
			needed[v] = needed[v] || needed[x]
		}
		if needed[v] {
			order = append(order, v)
		}
		stack = stack[:len(stack)-1]
	}
	return order
}
