// Package nn writes models as programs of package hlo: layers whose functions declare their parameters where they use
// them. It imports hlo alone.
//
//	func layer(s *nn.Scope, x nn.V) nn.V {
//		y := s.Linear(s.RMSNorm(x, "norm", 1e-5), "up", 4*width, false)
//		return x.Add(s.Linear(nn.SiLU(y), "down", width, false).As(x.Type()))
//	}
//
// A [Model] is a list of units: embeddings, layers, a head. A [Unit] is what is gathered, computed,
// recomputed and reduced as one. [Model.Params] lists the parameters, [Model.Write] writes a unit into a program, and
// [hlo.Grad] writes its gradients. Names of parameters are those of PyTorch, so that checkpoints fit.
//
// Errors are those of the program: [hlo.Func.Text] returns the first, with the line of the model that made it.
package nn

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/xla/hlo"
)

// V is short for a value of a program.
type V = *hlo.Value

// A Param is a parameter that a unit has declared.
type Param struct {
	// Name is the unit's Name and the parameter's own.
	Name string
	Dims []int
	// Type is that of its elements: [Model.Type], or for an adapter [LoRA.Type].
	Type hlo.Type
	// Initial values are of a normal distribution with this mean and standard deviation.
	Mean, Std float64
	// Adapter says that it belongs to LoRA. The names of the two of a Linear are its own and .lora_A.weight,
	// .lora_B.weight.
	Adapter bool
	// Turned says that it is a matrix [in,out], as Conv1D has it. PyTorch's Linear has [out,in].
	Turned bool
}

// Len returns the number of elements.
func (p Param) Len() int {
	n := 1
	for _, d := range p.Dims {
		n *= d
	}
	return n
}

// Initial returns the values that p begins with. They depend on seed, name and length alone.
func (p Param) Initial(seed uint64) []float32 {
	h := seed
	for _, c := range []byte(p.Name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	rnd, x := rand.New(rand.NewPCG(seed, h)), make([]float32, p.Len())
	for i := range x {
		if x[i] = float32(p.Mean); p.Std > 0 {
			x[i] += float32(rnd.NormFloat64() * p.Std)
		}
	}
	return x
}

// A Unit is what is gathered, computed, recomputed and reduced as one.
type Unit struct {
	// Name goes before the names of the unit's parameters, such as "model.layers.3.".
	Name string
	// Kind is equal for units whose programs are equal but for the names of parameters: they are compiled once.
	Kind string
	// Uses lists earlier units whose parameters this one reads by [Scope.Of], such as that of a tied head.
	Uses []int
	// Forward computes the unit. The first unit has no x and begins with Scope.Tokens; the last returns what
	// Loss takes.
	Forward func(s *Scope, x V) V
}

// A Model is a list of units in the order in which they are computed.
type Model struct {
	Units []Unit
	// Loss is a scalar of what the last unit returns, as CrossEntropy is.
	Loss func(s *Scope, out V) V
	// Chunk, if not 0, is how many tokens the last unit and Loss take at a time in [Model.WriteTail], so that
	// the logits of all tokens are never held. The last unit computes each token from that token of x alone,
	// and draws nothing, and Loss is a mean over the tokens that count, as CrossEntropy and Smoothed are.
	Chunk int
	// Room, if not 0, is the most tokens that a row can have in generation.
	Room int
	// Act is the type of products, F32 by default. Norms, softmax and losses are of F32 at least.
	Act hlo.Type
	// Res is the type of what goes from unit to unit, which layers add to, F32 by default.
	Res hlo.Type
	// Type is that of parameters, F32 by default.
	Type hlo.Type
	// LoRA puts adapters beside some Linears, and freezes everything else. It may be nil.
	LoRA *LoRA
	// Initial, if not nil, may change the mean and deviation that a parameter was declared with.
	Initial func(p *Param)

	kinds          []string // by Params
	words, classes int      // likewise
}

// LoRA is the option of low-rank adapters (Hu et al. 2021): beside a Linear y = x W runs Scale * x A B.
type LoRA struct {
	// Rank is the number of columns of A.
	Rank int
	// Scale is alpha/rank; with rank stabilization (rsLoRA) alpha/sqrt(rank).
	Scale float64
	// Dropout is the rate at which elements of x are dropped before A, where the program has a Key.
	Dropout float64
	// Type is that of adapters and their products, F32 by default.
	Type hlo.Type
	// Has says which Linears have adapters, by whole name, such as "model.layers.3.self_attn.q_proj".
	Has func(name string) bool
	// Own, if not nil, returns rank and scale of the adapter of a Linear that Has has, in the place of
	// Rank and Scale.
	Own func(name string) (rank int, scale float64)
}

// Of returns rank and scale of the adapter beside the Linear of this name.
func (l *LoRA) Of(name string) (rank int, scale float64) {
	if l.Own != nil {
		return l.Own(name)
	}
	return l.Rank, l.Scale
}

// Frozen reports whether p is never updated.
func (m *Model) Frozen(p Param) bool { return m.LoRA != nil && !p.Adapter }

// Kind returns what names the programs of unit u: its Kind, and after Params with LoRA a number behind it
// where units of one kind differ in their adapters.
func (m *Model) Kind(u int) string {
	if m.kinds == nil {
		return m.Units[u].Kind
	}
	return m.kinds[u]
}

// Vocabulary returns, after Params, how many rows the tables have that tokens are looked up in by Embed or Rows, the
// least of them, and how many logits CrossEntropy chooses from. What the model does otherwise is 0. A program
// computes something for tokens out of range, and says nothing: whoever feeds it checks them.
func (m *Model) Vocabulary() (tokens, wanted int) { return m.words, m.classes }

// Params lists the parameters of all units, and what each unit returns, for a batch of these shapes (tokens
// and what is wanted, [B,T] of I32). Shapes are checked, and that units of one kind are equal, without a
// compiler.
func (m *Model) Params(in ...hlo.Array) (params [][]Param, outs []hlo.Array, err error) {
	type written struct{ text, unit string }
	base, all := map[string]written{}, map[string][]string{} // by kind: its program without adapters; those with them
	known := map[string]Param{}
	var x *hlo.Array
	m.kinds, m.words, m.classes = nil, 0, 0
	var kinds []string
	for i, u := range m.Units {
		r, text, err := m.record(i, in, x, m.LoRA, known)
		if err != nil {
			return nil, nil, fmt.Errorf("nn: unit %q: %w", u.Name, err)
		}
		plain := text
		if m.LoRA != nil {
			if _, plain, err = m.record(i, in, x, nil, known); err != nil {
				return nil, nil, fmt.Errorf("nn: unit %q: %w", u.Name, err)
			}
		}
		used := reads(u.Uses, r.of, params)
		text, plain = text+used, plain+used
		if b, has := base[u.Kind]; !has {
			base[u.Kind] = written{plain, u.Name}
		} else if b.text != plain {
			return nil, nil, fmt.Errorf("nn: units %q and %q are of one kind, %q, but differ in parameters, shapes or "+
				"constants: give them two kinds", b.unit, u.Name, u.Kind)
		}
		n := slices.Index(all[u.Kind], text)
		if n < 0 {
			n = len(all[u.Kind])
			all[u.Kind] = append(all[u.Kind], text)
		}
		kind := u.Kind
		if n > 0 {
			kind = fmt.Sprintf("%s_%d", u.Kind, n)
		}
		for _, p := range r.params {
			if _, twice := known[p.Name]; twice {
				return nil, nil, fmt.Errorf("nn: unit %q: parameter %s is one of another unit, too", u.Name, p.Name)
			}
			known[p.Name] = p
		}
		params, outs, kinds = append(params, r.params), append(outs, r.out), append(kinds, kind)
		x = &r.out
		m.words = least(m.words, r.words)
	}
	if m.Loss != nil && x != nil && len(in) > 1 {
		r, _, err := m.record(len(m.Units), in, x, m.LoRA, known)
		if err != nil {
			return nil, nil, fmt.Errorf("nn: the loss: %w", err)
		}
		m.classes = r.classes
	}
	if m.LoRA != nil && !slices.ContainsFunc(params, func(list []Param) bool {
		return slices.ContainsFunc(list, func(p Param) bool { return p.Adapter })
	}) {
		return nil, nil, fmt.Errorf("nn: LoRA: Has has none of the model's Linears, so there is nothing to train")
	}
	m.kinds = kinds
	return params, outs, nil
}

// reads says what a unit's program has for parameters of other units: all of those that it uses are its arguments, in
// their order.
func reads(uses []int, of []string, params [][]Param) (text string) {
	for k, n := range uses {
		if n < 0 || n >= len(params) {
			continue
		}
		for i, p := range params[n] {
			text += fmt.Sprintln("uses", k, i, p.Dims, p.Type, slices.Index(of, p.Name))
		}
	}
	return text
}

// least is the smaller of two numbers, of which 0 is none.
func least(a, b int) int { return cmp.Or(min(a, b), a+b) }

// record is what a walk through a unit has found.
type record struct {
	params []Param
	has    map[string]V
	of     []string         // names of other units' parameters
	known  map[string]Param // parameters of units before
	out    hlo.Array

	words, classes int // as Model.Vocabulary
}

// record walks through unit u, or behind the last through the loss. The text is that of its program, with names
// relative to the unit's.
func (m *Model) record(u int, in []hlo.Array, x *hlo.Array, lora *LoRA, known map[string]Param) (r *record, text string,
	err error) {
	var f hlo.Func
	r = &record{has: map[string]V{}, known: known}
	s := &Scope{Pass: &Pass{Fn: &f, Key: f.Arg(hlo.U64, 2)}, m: m, lora: lora, unit: u, rec: r}
	for _, a := range in {
		s.In = append(s.In, f.Arg(a.Type, a.Dims...))
	}
	var xv V
	if x != nil {
		xv = f.Arg(x.Type, x.Dims...)
	}
	forward := m.Loss
	if u < len(m.Units) {
		s.at, forward = m.Units[u].Name, m.Units[u].Forward
	}
	out := forward(s, xv)
	if out == nil {
		return nil, "", fmt.Errorf("its function returned nothing")
	}
	r.out = hlo.Array{Type: out.Type(), Dims: out.Dims()}
	text, err = f.Text("unit", out)
	for _, p := range r.params {
		text += p.Name[len(s.at):] + "\n"
	}
	return r, text, err
}

// A Pass is one writing of a model, or of some units, into a program.
type Pass struct {
	Fn *hlo.Func
	// In is the batch: tokens [B,T], and what is wanted after each [B,T], where negative numbers are not counted.
	In []V
	// Has are the parameters that are needed, by whole name. Their type may be any of floating point.
	Has map[string]V
	// Key is for dropout, [2] of U64: a number unlike those of other ranks, steps and micro batches, and the
	// number of the unit. nil: nothing is dropped.
	Key V
	// Again has a unit computed once more for its gradient, from x and parameters alone (activation checkpointing).
	Again bool
	// Next is set for generation.
	Next *Next
	// Attention, if not nil, may replace how attention is computed, by a fused kernel. It returns nil where
	// that does not fit.
	Attention func(q, k, v V, a Attention) V
}

// Next is a step of generation: the tokens follow others, whose keys and values are kept.
type Next struct {
	// Pos is the position of each row's first token, [B], or of all, [1], of I32.
	Pos V
	// Room is the number of tokens that a cache has room for.
	Room int
	// Cache is what the unit kept in the step before; nil in the first, where Pos is 0.
	Cache []V
	// Kept is what the unit keeps, for the next step. Write sets it.
	Kept []V
}

// Write writes unit u of the model, applied to x, which is nil for the first.
func (m *Model) Write(p *Pass, u int, x V) V {
	scope := func(p *Pass) *Scope { return &Scope{Pass: p, m: m, lora: m.LoRA, unit: u, at: m.Units[u].Name} }
	if p.Next != nil {
		p.Next.Kept = nil
	}
	if !p.Again {
		return m.Units[u].Forward(scope(p), x)
	}
	names, in := m.inputs(p, u, x)
	if p.Fn.Err() != nil {
		return p.Fn.Const(hlo.F32, 0)
	}
	pass := *p // as it is now: the gradient is written later, and p may then have the Key of another unit
	return hlo.Again(in, func(in []V) V {
		own, x1 := pass, x
		if x != nil {
			x1, in = in[0], in[1:]
		}
		own.Has = map[string]V{}
		for i, name := range names {
			own.Has[name] = in[i]
		}
		return m.Units[u].Forward(scope(&own), x1)
	})
}

// inputs are what a unit is a function of: x, if there is one, and parameters, with their names.
func (m *Model) inputs(p *Pass, u int, x V) (names []string, in []V) {
	var arrays []hlo.Array
	for _, v := range p.In {
		arrays = append(arrays, hlo.Array{Type: v.Type(), Dims: v.Dims()})
	}
	var xa *hlo.Array
	if x != nil {
		xa, in = &hlo.Array{Type: x.Type(), Dims: x.Dims()}, []V{x}
	}
	known := map[string]Param{}
	for name, v := range p.Has {
		known[name] = Param{Name: name, Dims: v.Dims(), Type: v.Type()}
	}
	r, _, err := m.record(u, arrays, xa, m.LoRA, known)
	if err != nil {
		p.Fn.Fail(err)
		return nil, nil
	}
	for _, q := range r.params {
		names = append(names, q.Name)
	}
	names = append(names, r.of...)
	for _, name := range names {
		v := p.Has[name]
		if v == nil {
			p.Fn.Fail(fmt.Errorf("unit %q: parameter %s is not given", m.Units[u].Name, name))
			return nil, nil
		}
		in = append(in, v)
	}
	return names, in
}

// WriteLoss writes the loss of what the last unit has returned.
func (m *Model) WriteLoss(p *Pass, out V) V {
	return m.Loss(&Scope{Pass: p, m: m, lora: m.LoRA, unit: len(m.Units)}, out)
}
