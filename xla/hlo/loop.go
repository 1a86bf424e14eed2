package hlo

import (
	"fmt"
	"slices"
	"strings"
)

// An inner is a function inside an operation. Its values are used in the function alone, which may also use
// values from outside.
type inner struct{ outer *inner }

// reached notes values that are made in the function of a loop, and used outside.
func (f *Func) reached(list []*Value) {
	for _, v := range list {
		if v == nil {
			f.fail("the function of a loop returns a value that is nil")
			return
		}
		at := f.region
		for at != v.at && at != nil {
			at = at.outer
		}
		if at != v.at {
			f.fail("a value that the function of a loop has made, %s, is used outside of it", v.text())
			return
		}
	}
}

// function writes a function with arguments like the values.
func (f *Func) function(like []*Value, of func(x []*Value) []*Value) (text string, out []*Value) {
	body := f.body
	f.body, f.region = nil, &inner{f.region}
	var args, x []*Value
	var names []string
	for _, v := range like {
		a := f.value(v.t, v.dims, nil)
		a.leaf = true
		args, names = append(args, a), append(names, a.name+": "+a.text())
	}
	x = slices.Clone(args)
	out = of(x)
	text = fmt.Sprintf("{\n^r(%s):\n", strings.Join(names, ", "))
	f.reached(out)
	var n, t []string
	for _, v := range out {
		if v != nil {
			n, t = append(n, v.name), append(t, v.text())
		}
	}
	text += fmt.Sprintf("%s\"stablehlo.return\"(%s) : (%s) -> ()\n}", f.body, strings.Join(n, ", "),
		strings.Join(t, ", "))
	f.body, f.region = body, f.region.outer
	return text, out
}

// alike notes values of a function that do not have the shapes of others.
func (f *Func) alike(op string, want, got []*Value) bool {
	ok := len(want) == len(got)
	for i := range want {
		ok = ok && got[i] != nil && got[i].f == f && got[i].t == want[i].t && slices.Equal(got[i].dims, want[i].dims)
	}
	if !ok {
		var w, g []string
		for _, v := range want {
			w = append(w, v.text())
		}
		for _, v := range got {
			if v != nil {
				g = append(g, v.text())
			}
		}
		f.fail("%s: its function returns %v, where it is given %v", op, g, w)
	}
	return ok
}

// While applies of to values as long as cond, of the values, is true: a scalar of Bool. It returns the last.
// A gradient through it is an error: Scan has one.
func While(init []*Value, cond func(x []*Value) *Value, of func(x []*Value) []*Value) []*Value {
	if len(init) == 0 || !init[0].fits("While", init...) {
		return init
	}
	f, before := init[0].f, init[0].f.made
	var in []*Value // what a gradient could have reached
	out := f.while("While", init, cond, func(x []*Value) []*Value {
		next := of(x)
		if f.err == nil && !slices.Contains(next, nil) {
			in = outside(before, nil, next...)
		}
		return next
	})
	if f.err != nil {
		return init
	}
	in = append(in, init...)
	for _, v := range out {
		if !v.t.integer() {
			v.in = in
			v.back = func(*Value) []*Value {
				f.fail("Grad: of a While, which has no gradient: use Scan")
				return make([]*Value, len(in))
			}
		}
	}
	return out
}

func (f *Func) while(op string, init []*Value, cond func(x []*Value) *Value, of func(x []*Value) []*Value) []*Value {
	test, c := f.function(init, func(x []*Value) []*Value { return []*Value{cond(x)} })
	if f.err == nil && (c[0] == nil || c[0].t != Bool || len(c[0].dims) != 0) {
		f.fail("%s: the condition is no scalar of %s", op, Bool)
	}
	if f.err != nil {
		return init
	}
	body, next := f.function(init, of)
	if f.err != nil || !f.alike(op, init, next) {
		return init
	}
	var out []*Value
	for _, v := range init {
		out = append(out, f.value(v.t, v.dims, nil))
	}
	f.write(out, "stablehlo.while", "("+test+", "+body+")", init)
	return out
}

// Scan applies of n times to values, carry, and returns the last, as jax.lax.scan does. The i-th time of is
// also given i, a scalar of I32, the i-th part along the first axis of each of xs, and with. It returns the
// next carry. Carry, xs and with have gradients, for which the steps are computed once more from carries that
// were kept; what else of takes that depends on an argument is an error, as in Again.
func Scan(n int, carry, xs, with []*Value, of func(i *Value, carry, x, with []*Value) []*Value) []*Value {
	if len(carry) == 0 || !carry[0].fits("Scan", slices.Concat(carry, xs, with)...) {
		return carry
	}
	f, before := carry[0].f, carry[0].f.made
	if n < 1 {
		f.fail("Scan: %d steps", n)
		return carry
	}
	for _, x := range xs {
		if len(x.dims) == 0 || x.dims[0] != n {
			f.fail("Scan: %d steps over %s", n, x.text())
			return carry
		}
	}
	k, in := len(carry), slices.Concat(carry, xs, with)
	parts := func(i *Value, of []*Value) (list []*Value) {
		for _, x := range of {
			list = append(list, x.part(i))
		}
		return list
	}
	state := append([]*Value{f.Const(I32, 0)}, carry...)
	for _, c := range carry {
		state = append(state, f.Const(c.t, 0).To(append([]int{n}, c.dims...)...))
	}
	more := func(x []*Value) *Value { return x[0].Cmp("LT", f.Const(I32, float64(n))) }
	last := f.while("Scan", state, more, func(x []*Value) []*Value {
		next := of(x[0], x[1:1+k], parts(x[0], xs), with)
		if f.err != nil || !f.alike("Scan", carry, next) || f.caught("Scan", before, in, next...) {
			return x
		}
		next = append([]*Value{x[0].AddC(1)}, next...)
		for j, saved := range x[1+k:] {
			next = append(next, saved.setPart(x[0], x[1+j]))
		}
		return next
	})
	if f.err != nil {
		return carry
	}
	saved, d := last[1+k:], make([]*Value, k)
	// The gradients of all results meet in one value, which has the loop back: Grad comes to it after them.
	hub := With(f.Const(F32, 0), in, func(*Value) []*Value {
		g := f.scanBack(n, k, carry, saved, xs, with, d, parts, of)
		clear(d)
		return g
	})
	out := make([]*Value, k)
	for j, v := range last[1 : 1+k] {
		out[j] = With(v, []*Value{hub}, func(g *Value) []*Value {
			d[j] = g
			return []*Value{f.Const(F32, 0)}
		})
	}
	return out
}

// scanBack is the loop of a Scan backwards: d are the gradients of its results, nil if there is none.
func (f *Func) scanBack(n, k int, carry, saved, xs, with, d []*Value, parts func(*Value, []*Value) []*Value,
	of func(i *Value, carry, x, with []*Value) []*Value) []*Value {
	in := slices.Concat(carry, xs, with)
	var at []int // of in: those of floating point
	state := []*Value{f.Const(I32, float64(n-1))}
	for i, v := range in {
		if v.t.integer() {
			continue
		}
		at = append(at, i)
		switch {
		case i < k && d[i] != nil:
			state = append(state, d[i])
		case i >= k+len(xs) && v.t.narrow(): // sums of many
			state = append(state, f.Const(F32, 0).To(v.dims...))
		default:
			state = append(state, f.zeros(v))
		}
	}
	more := func(x []*Value) *Value { return x[0].Cmp("GE", f.Const(I32, 0)) }
	last := f.while("Scan", state, more, func(x []*Value) []*Value {
		var own []*Value // of this step, without what they were made of
		for _, v := range slices.Concat(parts(x[0], slices.Concat(saved, xs)), with) {
			own = append(own, Stop(v))
		}
		y := of(x[0], own[:k], own[k:k+len(xs)], own[k+len(xs):])
		loss, by := f.Const(F64, 0), []*Value{}
		for j, i := range at {
			if by = append(by, own[i]); i < k {
				wide := F32
				if y[i].t == F64 {
					wide = F64
				}
				loss = loss.Add(y[i].As(wide).Mul(x[1+j].As(wide)).SumAll().As(F64))
			}
		}
		next := []*Value{x[0].AddC(-1)}
		for j, g := range Grad(loss, by...) {
			switch was := x[1+j]; {
			case at[j] < k:
				next = append(next, g)
			case at[j] < k+len(xs):
				next = append(next, was.setPart(x[0], g))
			default:
				next = append(next, was.Add(g.As(was.t)))
			}
		}
		return next
	})
	out := make([]*Value, len(in))
	if f.err == nil {
		for j, i := range at {
			out[i] = last[1+j].As(in[i].t)
		}
	}
	return out
}

// firsts are indices of the i-th part along the first axis of v.
func (v *Value) firsts(i *Value) []*Value {
	at := slices.Repeat([]*Value{v.f.Const(I32, 0)}, len(v.dims))
	at[0] = i
	return at
}

func (v *Value) part(i *Value) *Value {
	return v.Slice(append([]int{1}, v.dims[1:]...), v.firsts(i)...).Reshape(v.dims[1:]...)
}

func (v *Value) setPart(i, x *Value) *Value {
	return v.Update(x.Reshape(append([]int{1}, x.dims...)...), v.firsts(i)...)
}
