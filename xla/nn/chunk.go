package nn

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/xla/hlo"
)

// WriteTail writes the last unit, applied to x, and the loss of what it returns. With a Chunk that is a loop over
// chunks of tokens, which goes forward and, for the gradient, backward: see [Model.Sums].
func (m *Model) WriteTail(p *Pass, x V) V {
	if m.Chunk == 0 {
		return m.WriteLoss(p, m.Write(p, len(m.Units)-1, x))
	}
	sum := m.Sums(p, x, 1, func(p *Pass, y V) []V { return []V{m.LossSum(p, y)} })[0]
	return sum.Div(counting(p.In[1], sum.Type()).Max(p.Fn.Const(sum.Type(), 1)))
}

// LossSum writes the sum of which the loss of out, what the last unit has returned, is the mean: over the tokens that
// count.
func (m *Model) LossSum(p *Pass, out V) V {
	loss := m.WriteLoss(p, out)
	return loss.Mul(counting(p.In[1], loss.Type()))
}

// counting returns the number of tokens that count, those wanted that are not negative, in the type t.
func counting(want V, t hlo.Type) V {
	return want.Cmp("GE", want.Func().Const(want.Type(), 0)).As(t).SumAll()
}

// Sums writes the last unit, applied to x, and returns the k scalars that of writes for its result. With a
// Chunk, unit and of are written for so many tokens at a time, [1,Chunk], and the scalars are those of all
// chunks, added in float32 at least. What fills up the last chunk are tokens 0, of which -1 is wanted. The
// gradient computes each chunk once more: the logits of one chunk are all that is held, forward and backward.
func (m *Model) Sums(p *Pass, x V, k int, of func(p *Pass, y V) []V) []V {
	last := len(m.Units) - 1
	if m.Chunk == 0 {
		return of(p, m.Write(p, last, x))
	}
	wide := (&Scope{Pass: p, m: m}).Wide()
	zeros := slices.Repeat([]V{p.Fn.Const(wide, 0)}, k)
	switch {
	case m.Chunk < 0:
		p.Fn.Fail(fmt.Errorf("nn: chunks of %d tokens", m.Chunk))
	case len(p.In) < 2 || x == nil || x.Rank() < 2 || !slices.Equal(x.Dims()[:2], p.In[1].Dims()):
		p.Fn.Fail(fmt.Errorf("nn: unit %q cannot be computed by chunks: it is given no [B,T,...] for [B,T] wanted tokens",
			m.Units[last].Name))
	}
	names, in := m.inputs(p, last, x)
	if p.Fn.Err() != nil {
		return zeros
	}
	n := p.In[1].Len()
	chunk := min(m.Chunk, n)
	steps := (n + chunk - 1) / chunk
	parts := func(v V, fill float64) V { // [steps,1,chunk,...]
		dims := v.Dims()[2:]
		v = v.Reshape(append([]int{n}, dims...)...)
		if more := steps*chunk - n; more > 0 {
			v = hlo.Cat(0, v, p.Fn.Const(v.Type(), fill).To(append([]int{more}, dims...)...))
		}
		return v.Reshape(append([]int{steps, 1, chunk}, dims...)...)
	}
	xs := []V{parts(x, 0), parts(p.In[0], 0), parts(p.In[1], -1)}
	pass := *p
	return hlo.Scan(steps, zeros, xs, in[1:], func(_ V, sums, x, with []V) []V {
		own := pass
		own.In, own.Has = x[1:], map[string]V{}
		for i, name := range names {
			own.Has[name] = with[i]
		}
		s := &Scope{Pass: &own, m: m, lora: m.LoRA, unit: last, at: m.Units[last].Name}
		y := m.Units[last].Forward(s, x[0])
		if s.drawn > 0 { // the same for each chunk
			p.Fn.Fail(fmt.Errorf("nn: unit %q draws random numbers, so it cannot be computed by chunks", s.at))
		}
		next := of(&own, y)
		for i := range next {
			next[i] = sums[i].Add(next[i].As(wide))
		}
		return next
	})
}
