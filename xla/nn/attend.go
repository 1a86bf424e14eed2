package nn

import (
	"cmp"
	"math"

	"github.com/goccl/goccl/xla/hlo"
)

// Attention says how a token attends to others. The zero value is causal: to itself and to all before it.
type Attention struct {
	// Full has it attend to those after it, too.
	Full bool
	// Window, if not 0, is how many tokens up to itself it attends to.
	Window int
	// Scale is that of products of queries and keys, 1/sqrt(D) by default.
	Scale float64
	// Dropout is the rate at which weights are dropped, where the program has a Key.
	Dropout float64
}

// Rotate turns pairs of elements of x [B,T,H,D] by the token's position times a frequency, of which there are at most
// D/2 (RoPE, Su et al. 2021). As Hugging Face has it, the pairs are elements i and i+n, where n is the number of
// frequencies; elements from 2n on stay. scale multiplies the result; YaRN's is not 1.
func (s *Scope) Rotate(x V, freq []float64, scale float64) V {
	d, n := x.Dims(), len(freq)
	if len(d) != 4 || 2*n > d[3] || n == 0 {
		return s.Fail("Rotate: of %v by %d frequencies", d, n)
	}
	p := s.Positions()
	angle := p.As(s.Wide()).Reshape(p.Dims()[0], d[1], 1, 1).Mul(s.Fn.Array(s.Wide(), freq, n))
	sin, cos := angle.Sin(), angle.Cos()
	if scale != 1 {
		sin, cos = sin.MulC(scale), cos.MulC(scale)
	}
	a, b := x.Cut(3, 0, n).As(s.Wide()), x.Cut(3, n, 2*n).As(s.Wide())
	parts := []V{a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin))}
	if 2*n < d[3] {
		parts = append(parts, x.Cut(3, 2*n, d[3]).As(s.Wide()))
	}
	return hlo.Cat(3, parts...).As(x.Type())
}

// Attend is attention of q [B,T,H,D] on k and v [B,T,K,D], where K divides H; the result is [B,T,H*D]. In
// generation k and v of the tokens before are kept.
func (s *Scope) Attend(q, k, v V, a Attention) V {
	d := q.Dims()
	if len(d) != 4 || k.Rank() != 4 || v.Rank() != 4 || k.Dims()[2] == 0 || d[2]%k.Dims()[2] != 0 {
		return s.Fail("Attend: of %v on %v and %v: want [B,T,H,D] and [B,T,K,D], where K divides H", d, k.Dims(), v.Dims())
	}
	a.Scale = cmp.Or(a.Scale, 1/math.Sqrt(float64(d[3])))
	if s.Attention != nil && s.Next == nil {
		if y := s.Attention(q, k, v, a); y != nil {
			return y.Reshape(d[0], d[1], d[2]*d[3])
		}
	}
	b, t, h, heads := d[0], d[1], d[2], k.Dims()[2]
	if s.Next != nil {
		k, v = s.keep(k), s.keep(v)
	}
	keys := k.Dims()[1]
	q = q.Reshape(b, t, heads, h/heads, d[3])
	x := hlo.Dot(q, k, []int{4}, []int{3}, []int{0, 2}, []int{0, 2}).As(s.Wide()).MulC(a.Scale) // [B,K,T,G,keys]
	if seen := s.seen(keys, a); seen != nil {
		x = hlo.If(seen, x, s.Fn.Const(s.Wide(), -1e30))
	}
	p := s.Dropout(x.Softmax(), a.Dropout).As(v.Type())
	return hlo.Dot(p, v, []int{4}, []int{1}, []int{0, 1}, []int{0, 2}).Perm(0, 2, 1, 3, 4).Reshape(b, t, h*d[3])
}

// seen says which keys a token attends to, [B or 1,1,T,1,keys]; nil: all.
func (s *Scope) seen(keys int, a Attention) V {
	p := s.Positions()
	at, key := p.Reshape(p.Dims()[0], 1, p.Dims()[1], 1, 1), s.Fn.Iota(hlo.I32, 4, 1, 1, 1, 1, keys)
	near := at.Sub(key).Cmp("LT", s.Fn.Const(hlo.I32, float64(a.Window)))
	switch {
	case a.Full && s.Next != nil:
		return s.Fail("Attend: Full, in generation, where the tokens after a token are not there yet")
	case a.Full && a.Window == 0:
		return nil
	case a.Full:
		return near
	case a.Window == 0:
		return at.Cmp("GE", key)
	}
	return at.Cmp("GE", key).And(near)
}

// keep returns the next of the unit's caches with x [B,T,K,D] put in where the tokens stand.
func (s *Scope) keep(x V) V {
	n, d := s.Next, x.Dims()
	switch {
	case d[1] > n.Room:
		s.Fail("a cache with room for %d tokens gets %d", n.Room, d[1])
	case s.m.Room > 0 && n.Room > s.m.Room:
		s.Fail("a cache with room for %d tokens: the model generates rows of at most %d", n.Room, s.m.Room)
	case n.Cache == nil:
		x = x.Pad(1, 0, n.Room-d[1])
	case len(n.Kept) >= len(n.Cache):
		s.Fail("%d caches are given: it has more", len(n.Cache))
	case n.Pos.Len() == 1:
		zero := s.Fn.Const(n.Pos.Type(), 0)
		x = n.Cache[len(n.Kept)].Update(x, zero, n.Pos.Reshape(), zero, zero)
	default:
		// by rows of a table [B*Room,K*D]
		row := s.Fn.Iota(hlo.I32, 0, d[0], 1).MulC(float64(n.Room)).Add(s.Positions()).Reshape(d[0] * d[1])
		was := n.Cache[len(n.Kept)]
		x = hlo.SetAt(0, was.Reshape(d[0]*n.Room, d[2], d[3]), row, x.Reshape(d[0]*d[1], d[2], d[3])).Reshape(was.Dims()...)
	}
	n.Kept = append(n.Kept, x)
	return x
}
