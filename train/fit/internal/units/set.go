// Package units is the units of a model on a machine: their parameters in zero's memory or in XLA's, and
// programs on them.
package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/internal/cudnn"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/fit/update"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Options are fit's.
type Options struct {
	Rows, Tokens int
	Stage        int
	Units        bool
	Offload      bool
	Micro        int
	Recompute    bool
	BF16         bool
	Scale        *amp.Options
	Masked       bool
	Wait         bool
	Fused        bool
	Base         quant.Storage
	Clip         float64
	Adam         optim.AdamW
	Group        func(p nn.Param) update.Group
	EMA          float64
	Seed         uint64
	Initial      func(i int, p nn.Param) []float32
}

// Set is the units of a model.
type Set struct {
	M        *machine.Machine
	Mem      *machine.Memory
	Model    *nn.Model
	O        Options
	Params   [][]nn.Param      // by unit
	Outs     []hlo.Array       // what units return
	Draws    bool              // it has dropout
	Fused    bool              // cuDNN computes attention
	Frozen   bool              // some parameters are
	Lowest   int               // the first unit with something to train
	Stores   []Store           // what is trained, and what is frozen if anything is
	Held     [][][]*xla.Buffer // arguments, by store and unit, for as long as nothing need be opened
	programs map[string]*xla.Program
}

// Store is where the parameters of units are, of one sort.
type Store interface {
	// Declare adds the arguments for unit u, and returns its parameters that have gradients.
	Declare(f *hlo.Func, u int, has map[string]nn.V) []nn.V
	// Open returns the arguments, valid until Done, which is called when they have been read.
	Open(ctx context.Context, u int) ([]*xla.Buffer, error)
	Done(u int, open []*xla.Buffer) error
	// Load fills all parameters by fill, a checkpoint's reader. What that misses stays as it is.
	Load(ctx context.Context, fill Fill) error
	Close() error
}

// Fill fills tensors from a checkpoint, and returns the names of those that it does not have, on all ranks alike.
type Fill func(list []ckpt.Tensor) (missing []string, err error)

// roles stand behind a kind in the names of its programs, and behind these what there are several of.
var roles = []string{"back", "back_lowest", "eval", "export"}

// New finds the parameters of a model.
func New(model *nn.Model, o Options) (t *Set, err error) {
	t = &Set{Model: model, O: o, programs: map[string]*xla.Program{}, Lowest: -1}
	batch := hlo.Array{Type: hlo.I32, Dims: []int{t.O.Rows, t.O.Tokens}}
	if t.Params, t.Outs, err = t.Model.Params(batch, batch); err != nil {
		return nil, err
	}
	for _, a := range model.Units {
		for _, b := range model.Units {
			if role, is := strings.CutPrefix(b.Kind, a.Kind+"_"); is && slices.Contains(roles, role) {
				return nil, fmt.Errorf("fit: the kind %q of units is the name of a program of %q: call it something else", b.Kind, a.Kind)
			}
		}
	}
	for u, ps := range t.Params {
		for _, p := range ps {
			if t.Model.Frozen(p) {
				t.Frozen = true
			} else if t.Lowest < 0 {
				t.Lowest = u
			}
		}
	}
	if t.Lowest < 0 {
		return nil, errors.New("fit: no parameter of the model is trained")
	}
	t.Draws, err = t.random()
	return t, err
}

// random reports whether the model draws random numbers: then a unit with a key has more lines than without.
func (t *Set) random() (bool, error) {
	seen := map[string]bool{}
	for u := range t.Model.Units {
		if seen[t.Model.Kind(u)] {
			continue
		}
		seen[t.Model.Kind(u)] = true
		var lines [2]int
		for i := range lines {
			f := &hlo.Func{}
			has := map[string]nn.V{}
			for _, list := range t.Params {
				for _, p := range list {
					has[p.Name] = f.Arg(p.Type, p.Dims...)
				}
			}
			x, p := t.X(f, u), t.Pass(f, has)
			if i == 1 {
				p.Key = f.Arg(hlo.U64, 2)
			}
			text, err := f.Text("unit", t.Model.Write(p, u, x))
			if err != nil {
				return false, err
			}
			lines[i] = strings.Count(text, "\n")
		}
		if lines[0] != lines[1] {
			return true, nil
		}
	}
	return false, nil
}

// Known is how many tokens the model has rows for, or wanted ones logits; 0: any number.
func (t *Set) Known(wanted bool) int {
	n, m := t.Model.Vocabulary()
	if wanted {
		return m
	}
	return n
}

// Unknown is where x has the first token that the model does not know, -1 if it knows all. Wanted ones may be below 0.
func (t *Set) Unknown(x []int32, wanted bool) int {
	n := t.Known(wanted)
	return slices.IndexFunc(x, func(id int32) bool { return n > 0 && (int(id) >= n || id < 0 && !wanted) })
}

// Initial is the first values of the parameters of unit u that are frozen, or that are not.
func (t *Set) Initial(u int, frozen bool) (list [][]float32) {
	i := 0
	for _, ps := range t.Params[:u] {
		i += len(ps)
	}
	for k, p := range t.Params[u] {
		if t.Model.Frozen(p) == frozen {
			list = append(list, t.O.Initial(i+k, p))
		}
	}
	return list
}

// Of are the parameters of unit u that are frozen, or that are not.
func (t *Set) Of(u int, frozen bool) (list []nn.Param) {
	for _, p := range t.Params[u] {
		if t.Model.Frozen(p) == frozen {
			list = append(list, p)
		}
	}
	return list
}

// Last is the number of the last unit.
func (t *Set) Last() int { return len(t.Model.Units) - 1 }

// X is the argument that is the result of the unit before u.
func (t *Set) X(f *hlo.Func, u int) nn.V {
	if u == 0 {
		return nil
	}
	return f.Arg(t.Outs[u-1].Type, t.Outs[u-1].Dims...)
}

// Pass adds the arguments of a batch.
func (t *Set) Pass(f *hlo.Func, has map[string]nn.V) *nn.Pass {
	p := &nn.Pass{Fn: f, Has: has, In: []nn.V{f.Arg(hlo.I32, t.O.Rows, t.O.Tokens), f.Arg(hlo.I32, t.O.Rows, t.O.Tokens)}}
	if t.Fused {
		p.Attention = cudnn.Attention
	}
	return p
}

// Weighted is the loss times the argument that makes means over ranks those over tokens, if there is one.
func (t *Set) Weighted(f *hlo.Func, loss nn.V) nn.V {
	if t.O.Masked {
		loss = loss.Mul(f.Arg(hlo.F32))
	}
	return loss
}

// Scaled adds the argument that has the scale of the loss and what gradients are multiplied by, if the loss is scaled;
// else both are nil.
func (t *Set) Scaled(f *hlo.Func) (scale, back nn.V) {
	if t.O.Scale == nil {
		return nil, nil
	}
	x := f.Arg(hlo.F32, 2)
	return x.Cut(0, 0, 1).Reshape(), x.Cut(0, 1, 2).Reshape()
}

// Times is x times by, computed in float32, unless that is nil.
func Times(x, by nn.V) nn.V {
	if by == nil {
		return x
	}
	return x.As(hlo.F32).Mul(by).As(x.Type())
}

// Program is that of a name, written when it is first asked for, by all ranks.
func (t *Set) Program(ctx context.Context, name string, write func(f *hlo.Func) []nn.V) (*xla.Program, error) {
	return t.program(name, func() (*xla.Program, error) { return t.M.Build(ctx, name, write) })
}

// Own is Program of this rank's own: other ranks may have others, or none.
func (t *Set) Own(name string, write func(f *hlo.Func) []nn.V) (*xla.Program, error) {
	return t.program(name, func() (*xla.Program, error) { return t.M.Own(name, write) })
}

func (t *Set) program(name string, build func() (*xla.Program, error)) (p *xla.Program, err error) {
	if p = t.programs[name]; p == nil {
		if p, err = build(); err == nil {
			t.programs[name] = p
		}
	}
	return p, err
}

// Scalars is the argument of an update.Hyper.
func (t *Set) Scalars(n int, rate float64) (*xla.Buffer, error) {
	return xla.Put(t.M.Client(), []float32{float32(n), float32(rate)}, 2)
}

// Begin makes the memory, and puts what is frozen there.
func (t *Set) Begin(ctx context.Context, m *machine.Machine) (err error) {
	t.M, t.Fused = m, t.O.Fused && m.Client().Platform() == "cuda"
	if t.Mem, err = machine.NewMemory(ctx, m); err != nil || !t.Frozen {
		return err
	}
	b, err := t.newBase(ctx)
	if err == nil {
		t.Stores = append(t.Stores, b)
	}
	return err
}

// Close frees everything.
func (t *Set) Close() error {
	var errs []error
	for _, s := range t.Stores {
		errs = append(errs, s.Close())
	}
	if t.Mem != nil {
		errs = append(errs, t.Mem.Close())
	}
	return errors.Join(errs...)
}
