package whole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/same"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// Rule is how a parameter is stepped: a LAMB, an Adafactor, a Muon or, for what takes none of them,
// an optim.AdamW. With nil the parameter stays as it is, and has no state: give it to what is frozen.
type Rule any

// rules are the types of Rules, with the number of moments that they keep of an element.
var rules = map[string]int{"<nil>": 0, "whole.LAMB": 2, "whole.Adafactor": 0, "whole.Muon": 1, "optim.AdamW": 2}

// Model is what an Optimizer steps: a *zero.Model, at any stage.
type Model[T optim.Float] interface {
	Pieces(unit int) []zero.Piece
	StepWith(ctx context.Context, run func(each func(zero.Update[T]) error) error) error
}

// Optimizer steps all tensors of a Model, whatever parts of them its shards have. It has the moments
// of this rank's parts, in memory, and the averages of all rows and columns under Adafactor. Gradients
// that are not finite change nothing, as in a Step of zero.
type Optimizer[T optim.Float] struct {
	// Work is memory for Muon. A program that has a fast product sets its Mul.
	Work Workspace[T]

	c       *ccl.Comm // nil: each rank has all of each tensor
	m       Model[T]
	rule    func(unit, param int) Rule
	step    int
	units   [][]*shard[T]
	all     []*shard[T]
	sums    []float64 // over the ranks, by shard.at
	lengths []float64 // of Adafactor's steps, by shard.nth
	muon    matrices[T]
}

// shard is what this rank has of a parameter. Lo and Hi of its t are the part.
type shard[T optim.Float] struct {
	factors[T]  // row and col have the averages of a matrix under Adafactor
	unit, param int
	kind        string   // of its Rule
	now         any      // the Rule in this step
	moments     [][]T    // of the part
	spans       [][2]int // the Lo and Hi of each rank
	at, nth     int
	owner       int   // under Muon: the rank that has the whole matrix in a step
	out         int   // and where this rank's part begins in matrices.out
	in          []int // and, on the owner, where each rank's part begins in matrices.in
}

// New makes an Optimizer of m, which c is the Comm of. tensors are the names and shapes of all
// parameters, by unit. rule says how to step each. It is called in each step, and returns the same
// type each time. All ranks pass the same. It is collective.
func New[T optim.Float](ctx context.Context, c *ccl.Comm, m Model[T], tensors [][]Tensor,
	rule func(unit, param int) Rule) (*Optimizer[T], error) {
	o, items, bad := &Optimizer[T]{c: c, m: m, rule: rule}, []string(nil), error(nil)
	if m == nil || rule == nil {
		bad, tensors = errors.New("New takes a Model and a rule"), nil
	} else if len(m.Pieces(len(tensors))) > 0 {
		bad = fmt.Errorf("the Model has more units than the %d that there are Tensors for", len(tensors))
	}
	for i, list := range tensors {
		o.units = append(o.units, nil)
		for j, t := range list {
			s := &shard[T]{unit: i, param: j, kind: fmt.Sprintf("%T", rule(i, j))}
			s.t = Tensor{Name: t.Name, Rows: t.Rows, Cols: t.Cols}
			if _, ok := rules[s.kind]; t.wrong() {
				bad = fmt.Errorf("tensor %q is %d x %d", t.Name, t.Rows, t.Cols)
			} else if !ok {
				bad = fmt.Errorf("the rule of %q is a %s, which is no LAMB, Adafactor, Muon or optim.AdamW", t.Name, s.kind)
			}
			o.units[i], o.all = append(o.units[i], s), append(o.all, s)
			items = append(items, fmt.Sprintf("parameter %d of unit %d: %d x %d, %s", j, i, t.Rows, t.Cols, s.kind))
		}
		for _, p := range m.Pieces(i) {
			if p.Param < len(list) {
				o.units[i][p.Param].t.Lo, o.units[i][p.Param].t.Hi = p.Lo, p.Hi
			} else {
				bad = fmt.Errorf("unit %d has a parameter %d, and Tensors for %d", i, p.Param, len(list))
			}
		}
	}
	if err := same.Args(ctx, c, "optim/whole", bad, items...); err != nil {
		return nil, err
	}
	return o, o.lay(ctx)
}

// lay gathers which parts the ranks have, and gives each tensor its place in what they exchange.
func (o *Optimizer[T]) lay(ctx context.Context) error {
	size, me, n := o.c.Size(), o.c.Rank(), len(o.all)
	mine, parts := make([]int, 2*n), make([]int, size*2*n)
	for k, s := range o.all {
		mine[2*k], mine[2*k+1] = s.t.Lo, s.t.Hi
	}
	if err := ccl.AllGather(ctx, o.c, parts, mine); err != nil {
		return err
	}
	missing := 0 // of what the ranks would have if each had all
	for k, s := range o.all {
		for r := range size {
			x := parts[2*(r*n+k):]
			s.spans = append(s.spans, [2]int(x))
			missing += s.t.Rows*s.t.Cols - (x[1] - x[0])
		}
	}
	if missing == 0 { // one rank, or stage 0
		o.c, size, me = nil, 1, 0
	}
	for _, s := range o.all {
		s.spans, s.at, s.nth = s.spans[:size], len(o.sums), len(o.lengths)
		held := 0
		for _, x := range s.spans {
			held += x[1] - x[0]
		}
		if held != s.t.Rows*s.t.Cols {
			return fmt.Errorf("optim/whole: %q is %d x %d, and the Model has %d elements of it", s.t.Name, s.t.Rows, s.t.Cols, held)
		}
		for range rules[s.kind] {
			s.moments = append(s.moments, make([]T, s.t.Hi-s.t.Lo))
		}
		switch s.kind {
		case "whole.LAMB": // sums the squares of parameters and of directions
			o.sums = append(o.sums, 0, 0)
		case "whole.Adafactor": // sums those of parameters, and of gradients by rows and by columns
			o.sums, o.lengths = append(o.sums, 0), append(o.lengths, 0)
			s.t = s.t.column()
			rows, cols := s.t.State()
			s.row, s.col = make([]T, rows), make([]T, cols)
			o.sums = append(o.sums, make([]float64, rows+cols)...)
		case "whole.Muon":
			o.muon.list = append(o.muon.list, s)
		}
	}
	o.muon.lay(me, size)
	return nil
}

// Step makes step number step, counted from 1, by StepWith of the Model. It is collective.
func (o *Optimizer[T]) Step(ctx context.Context, step int) error {
	o.step = step
	return o.m.StepWith(ctx, func(each func(zero.Update[T]) error) error {
		for _, do := range []func() error{
			o.begin,
			func() error { return each(o.look) },
			func() error { return o.exchange(ctx) },
			func() error { return o.muon.exchange(ctx, o.c, &o.Work) },
			func() error { return o.measure(ctx, each) },
			func() error { return each(o.apply) },
		} {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin asks for the rules of this step.
func (o *Optimizer[T]) begin() (err error) {
	clear(o.sums)
	clear(o.lengths)
	for _, s := range o.all {
		s.now = o.rule(s.unit, s.param)
		if kind := fmt.Sprintf("%T", s.now); kind != s.kind {
			return fmt.Errorf("optim/whole: the rule of %q was a %s, and is a %s now", s.t.Name, s.kind, kind)
		}
		switch h := s.now.(type) {
		case LAMB:
			s.now, err = lambOf[T](h, o.step)
		case Adafactor:
			s.now, err = h.filled(o.step)
		case Muon:
			s.now, err = h.filled()
		case optim.AdamW:
			_, err = h.Factors(o.step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moment is moment k of the elements of p.
func (s *shard[T]) moment(k int, p zero.Piece) []T { return s.moments[k][p.Lo-s.t.Lo : p.Hi-s.t.Lo] }

// look brings the gradients into the moments, and adds up what the step depends on.
func (o *Optimizer[T]) look(p zero.Piece, w, g []T) error {
	if p.Unit >= len(o.units) {
		return fmt.Errorf("optim/whole: the Model has a unit %d, and there are Tensors for %d", p.Unit, len(o.units))
	}
	s := o.units[p.Unit][p.Param]
	switch h := s.now.(type) {
	case lamb[T]:
		own, long := h.moments(w, g, s.moment(0, p), s.moment(1, p))
		o.sums[s.at] += own
		o.sums[s.at+1] += long
	case Adafactor:
		o.sums[s.at] += squares(w)
		f := s.factorsOf(p)
		for k := range len(f.row) + len(f.col) {
			o.sums[s.at+1+k] += marginal(f.t, k, g)
		}
	case Muon:
		ahead(h, g, s.moment(0, p), o.muon.part(s, p))
	}
	return nil
}

// factorsOf are the factors for the elements of p.
func (s *shard[T]) factorsOf(p zero.Piece) factors[T] {
	f := s.factors
	f.t.Lo, f.t.Hi = p.Lo, p.Hi
	return f
}

// exchange adds the sums up over the ranks, and makes Adafactor's averages of them.
func (o *Optimizer[T]) exchange(ctx context.Context) error {
	err := o.sum(ctx, o.sums)
	for _, s := range o.all {
		if h, ok := s.now.(Adafactor); ok && err == nil && s.t.Rows*s.t.Cols > 0 {
			s.average(root(o.step, h.Power), func(k int) float64 { return o.sums[s.at+1+k] })
		}
	}
	return err
}

// sum adds x up over the ranks.
func (o *Optimizer[T]) sum(ctx context.Context, x []float64) error {
	if o.c == nil || len(x) == 0 {
		return nil
	}
	return ccl.AllReduce(ctx, o.c, x, x, ccl.Sum)
}

// measure sums the squares of Adafactor's directions.
func (o *Optimizer[T]) measure(ctx context.Context, each func(zero.Update[T]) error) error {
	if len(o.lengths) == 0 {
		return nil
	}
	if err := each(func(p zero.Piece, _, g []T) error {
		if s := o.units[p.Unit][p.Param]; s.row != nil {
			o.lengths[s.nth] += s.factorsOf(p).length(g)
		}
		return nil
	}); err != nil {
		return err
	}
	return o.sum(ctx, o.lengths)
}

// apply makes the step.
func (o *Optimizer[T]) apply(p zero.Piece, w, g []T) error {
	s := o.units[p.Unit][p.Param]
	switch h := s.now.(type) {
	case lamb[T]:
		h.apply(h.rate(o.sums[s.at], o.sums[s.at+1]), w, s.moment(0, p), s.moment(1, p))
	case Adafactor:
		s.factorsOf(p).apply(h, h.rate(o.step, s.t.Rows*s.t.Cols, o.sums[s.at], o.lengths[s.nth]), w, g)
	case Muon:
		muonStep(h, s.t, w, o.muon.part(s, p))
	case optim.AdamW:
		return optim.Apply(h, o.step, w, g, s.moment(0, p), s.moment(1, p))
	}
	return nil
}

// Tensors are the state of this rank, as package ckpt saves it and loads it into any number of ranks and any stage.
// place names the parameters, as that of zero's Tensors does; nil names them UNIT.PARAM.
func (o *Optimizer[T]) Tensors(place func(unit, param int) ckpt.Tensor) (list []ckpt.Tensor, err error) {
	for _, s := range o.all {
		t := ckpt.Tensor{Name: fmt.Sprintf("%d.%d", s.unit, s.param), Shape: []int{s.t.Rows * s.t.Cols}}
		if place != nil {
			t = place(s.unit, s.param)
		}
		_, prefix, _ := strings.Cut(strings.ToLower(s.kind)+".", ".")
		name := t.Name
		if s.row != nil {
			if t.Size != nil && !slices.Equal(t.Size, t.Shape) {
				return nil, fmt.Errorf("optim/whole: %q is split, and what is saved of Adafactor is of whole matrices", t.Name)
			}
			list = append(list, ckpt.Tensor{Name: prefix + "row." + name, Shape: []int{len(s.row)}, Data: s.row},
				ckpt.Tensor{Name: prefix + "col." + name, Shape: []int{len(s.col)}, Data: s.col})
		}
		if t.Hi == 0 && !slices.Contains(t.Size, 0) { // else what is from Hi on is padding
			t.Hi = s.t.Rows * s.t.Cols
		}
		lo, hi, at := max(s.t.Lo, t.Lo), min(s.t.Hi, t.Hi), t.Lo
		for k, m := range s.moments {
			if t.Name, t.Lo, t.Hi = prefix+"mv"[k:k+1]+"."+name, lo-at, hi-at; lo < hi {
				t.Data = m[lo-s.t.Lo : hi-s.t.Lo]
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// matrices brings the parts of each matrix under Muon to one rank, its owner, and the parts of the
// orthogonal matrix back. Each way is one AllToAllV for all matrices.
type matrices[T optim.Float] struct {
	list     []*shard[T]
	me       int
	out, in  []T   // the parts of this rank, by owner; the matrices of this rank, by the rank that has the part
	to, from []int // elements of out and of in, by rank
}

// lay chooses the owners among the ranks that have a part, so that all compute alike much, and the places of the parts.
func (x *matrices[T]) lay(me, size int) {
	x.me, x.to, x.from = me, make([]int, size), make([]int, size)
	load := make([]int, size)
	for _, s := range x.list {
		s.owner, s.in = -1, make([]int, size)
		for r, p := range s.spans {
			if p[0] < p[1] && (s.owner < 0 || load[r] < load[s.owner]) {
				s.owner = r
			}
		}
		if s.owner >= 0 {
			load[s.owner] += s.t.Rows * s.t.Cols * min(s.t.Rows, s.t.Cols)
		}
	}
	out, in := 0, 0
	for r := range size {
		for _, s := range x.list {
			if n := s.t.Hi - s.t.Lo; s.owner == r {
				s.out, out, x.to[r] = out, out+n, x.to[r]+n
			}
			if n := s.spans[r][1] - s.spans[r][0]; s.owner == me {
				s.in[r], in, x.from[r] = in, in+n, x.from[r]+n
			}
		}
	}
	x.out = make([]T, out)
	if x.in = x.out; size > 1 {
		x.in = make([]T, in)
	}
}

// part is where the elements of p are that this rank sends, and then has of the orthogonal matrix.
func (x *matrices[T]) part(s *shard[T], p zero.Piece) []T {
	return x.out[s.out+p.Lo-s.t.Lo : s.out+p.Hi-s.t.Lo]
}

// exchange makes of what is in the parts those of the orthogonal matrix. c is nil where each rank has all.
func (x *matrices[T]) exchange(ctx context.Context, c *ccl.Comm, w *Workspace[T]) error {
	if c != nil && len(x.list) > 0 {
		if err := ccl.AllToAllV(ctx, c, x.in, x.from, x.out, x.to); err != nil {
			return err
		}
	}
	for _, s := range x.list {
		if s.owner != x.me {
			continue
		}
		_, u, _, _ := w.take(s.t)
		for r, p := range s.spans {
			copy(u[p[0]:p[1]], x.in[s.in[r]:])
		}
		u = w.orthogonal(s.now.(Muon), s.t)
		for r, p := range s.spans {
			copy(x.in[s.in[r]:], u[p[0]:p[1]])
		}
	}
	if c == nil || len(x.list) == 0 {
		return nil
	}
	return ccl.AllToAllV(ctx, c, x.out, x.to, x.in, x.from)
}
