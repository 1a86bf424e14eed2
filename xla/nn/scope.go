package nn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/xla/hlo"
)

// A Scope is one writing of a unit: what its function makes layers by.
type Scope struct {
	*Pass
	m     *Model
	lora  *LoRA
	unit  int
	at    string  // prefix of parameters
	rec   *record // of a walk that finds the parameters
	drawn int     // how often random numbers were drawn
}

// Act returns the type of products.
func (s *Scope) Act() hlo.Type { return cmp.Or(s.m.Act, hlo.F32) }

// Wide returns the type of what must not be rounded much.
func (s *Scope) Wide() hlo.Type {
	if s.Act() == hlo.F64 {
		return hlo.F64
	}
	return hlo.F32
}

// Res returns the type of what goes from unit to unit.
func (s *Scope) Res() hlo.Type { return cmp.Or(s.m.Res, s.Wide()) }

// Tokens returns the tokens of the batch, [B,T].
func (s *Scope) Tokens() V { return s.In[0] }

// Positions returns the positions of the tokens, [1,T], or in generation [B,T] where rows differ.
func (s *Scope) Positions() V {
	p := s.Fn.Iota(hlo.I32, 1, 1, s.In[0].Dims()[1])
	if s.Next != nil {
		p = p.Add(s.Next.Pos.Reshape(s.Next.Pos.Len(), 1))
	}
	return p
}

// Param declares a parameter of the unit, whose initial values have this mean and standard
// deviation, and returns it. A name declared twice is one parameter.
func (s *Scope) Param(name string, mean, std float64, dims ...int) V {
	return s.param(Param{Name: s.at + name, Dims: dims, Type: cmp.Or(s.m.Type, hlo.F32), Mean: mean, Std: std})
}

func (s *Scope) param(p Param) V {
	has := s.Has
	if s.rec != nil {
		has = s.rec.has
	}
	v := has[p.Name]
	if v == nil {
		if s.rec == nil {
			s.Fail("parameter %s is not given", p.Name)
			return s.Fn.Const(p.Type, 0).To(p.Dims...)
		}
		p.Dims = slices.Clone(p.Dims)
		if s.m.Initial != nil && !p.Adapter {
			s.m.Initial(&p)
		}
		v = s.Fn.Arg(p.Type, p.Dims...)
		s.rec.params, has[p.Name] = append(s.rec.params, p), v
	}
	if !slices.Equal(v.Dims(), p.Dims) {
		s.Fail("parameter %s: %v is given, the unit has %v", p.Name, v.Dims(), p.Dims)
		return s.Fn.Const(p.Type, 0).To(p.Dims...)
	}
	return v
}

// Of returns a parameter of a unit that this one Uses, by its whole name.
func (s *Scope) Of(name string) V {
	if s.rec == nil {
		if v := s.Has[name]; v != nil {
			return v
		}
		return s.Fail("parameter %s of another unit is not given", name)
	}
	p, has := s.rec.known[name]
	if !has || !slices.ContainsFunc(s.m.Units[s.unit].Uses, func(u int) bool {
		return u >= 0 && u < s.unit && strings.HasPrefix(name, s.m.Units[u].Name)
	}) {
		return s.Fail("Of: no unit that it uses has a parameter %s", name)
	}
	if s.rec.has[name] == nil {
		s.rec.has[name] = s.Fn.Arg(p.Type, p.Dims...)
		s.rec.of = append(s.rec.of, name)
	}
	return s.rec.has[name]
}

// Fail notes an error of the unit. What it returns means nothing.
func (s *Scope) Fail(format string, args ...any) V {
	err := fmt.Errorf(format, args...)
	if s.rec == nil && s.unit < len(s.m.Units) {
		err = fmt.Errorf("unit %q: %w", s.at, err)
	}
	s.Fn.Fail(err)
	return s.Fn.Const(hlo.F32, 0)
}

// last returns the length of the last axis of x.
func (s *Scope) last(op string, x V) int {
	if x.Rank() == 0 {
		s.Fail("%s: of a scalar", op)
		return 1
	}
	return x.Dims()[x.Rank()-1]
}

// Random returns random bits of U32 with these dimensions, by the counter-based generator Philox from
// Pass.Key and the number of draws of the unit before this one: a unit that is computed again draws the same.
func (s *Scope) Random(dims ...int) V {
	if s.Key == nil {
		return s.Fail("Random: the program has no Key")
	}
	// The counter leaves 2^40 blocks of 128 bits to each draw, and 64 draws to each unit.
	at := s.Key.Cut(0, 1, 2).MulC(64).AddC(float64(s.drawn)).MulC(1 << 40)
	if s.drawn++; s.drawn > 64 {
		return s.Fail("Random: more than 64 draws")
	}
	_, bits := hlo.Random(hlo.Cat(0, s.Key.Cut(0, 0, 1), at), hlo.U32, dims...)
	return bits
}

// Dropout returns x with elements zeroed at the given rate, and the rest divided by 1-rate, where the program
// has a Key.
func (s *Scope) Dropout(x V, rate float64) V {
	if rate < 0 || rate >= 1 {
		return s.Fail("Dropout: rate %v: it is from 0 to below 1", rate)
	}
	if s.Key == nil || rate == 0 {
		return x
	}
	kept := s.Random(x.Dims()...).Cmp("GE", s.Fn.Const(hlo.U32, rate*(1<<32)))
	return hlo.If(kept, x.MulC(1/(1-rate)), s.Fn.Const(x.Type(), 0))
}
