package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/resume"
	"github.com/goccl/goccl/train/tp"
)

// progress is what a checkpoint keeps beside tensors. Zeros are not known: an older program has saved it.
type progress struct {
	Step, Rows int
	Seed       uint64
	Chars      []byte
	gpt.Config
	Steps, Warmup int
	LR, Clip      float64
	Sum           uint32 // of the data
}

// now is the progress of this run after a step.
func (tr *trainer) now(step int) progress {
	c, t := tr.cfg, tr.text
	return progress{Step: step, Rows: c.rows, Seed: c.seed, Chars: t.chars, Config: c.Config, Steps: c.steps,
		Warmup: c.warmup, LR: c.lr, Clip: c.clip, Sum: t.sum}
}

// compare says what a run with flags of its own would make of p: bad is why it cannot go on,
// changed what it does otherwise.
func (p *progress) compare(n progress, dir string) (changed string, bad error) {
	var must, may []string
	model, schedule := p.Heads != 0, p.LR != 0 // which older programs have not saved
	for _, f := range []struct {
		name      string
		was, is   any
		known     bool
		mayChange bool // a run may go on with another one
	}{
		// so that the data go on as they did
		{"-seed ", p.Seed, n.Seed, true, false}, {"-rows ", p.Rows, n.Rows, true, false},
		{"-layers ", p.Layers, n.Layers, p.Layers != 0, false}, {"-heads ", p.Heads, n.Heads, model, false},
		{"-width ", p.Width, n.Width, p.Width != 0, false},
		{"-context ", p.Context, n.Context, p.Context != 0, false}, {"-vocab ", p.Vocab, n.Vocab, p.Vocab != 0, false},
		{"-tied=", p.Tied, n.Tied, model, false}, {"-experts ", p.Sparse.Experts, n.Sparse.Experts, model, false},
		{"-top ", p.Sparse.Top, n.Sparse.Top, model && p.Sparse.Experts > 0, false},
		{"-shared=", p.Sparse.Shared, n.Sparse.Shared, model && p.Sparse.Experts > 0, false},
		{"-steps ", p.Steps, n.Steps, p.Steps != 0, true}, {"-lr ", p.LR, n.LR, schedule, true},
		{"-warmup ", p.Warmup, n.Warmup, schedule, true}, {"-clip ", p.Clip, n.Clip, schedule, true},
	} {
		switch {
		case f.was == f.is || !f.known:
		case f.mayChange:
			may = append(may, fmt.Sprintf("%s%v (it was %v)", f.name, f.is, f.was))
		default:
			must = append(must, fmt.Sprintf("%s%v", f.name, f.was))
		}
	}
	if p.Sum != 0 && p.Sum != n.Sum {
		may = append(may, "the data")
	}
	switch {
	case string(p.Chars) != string(n.Chars):
		return "", fmt.Errorf("%s was trained on other characters than -data has", dir)
	case must != nil:
		return "", fmt.Errorf("%s was trained with %s: give these, too", dir, strings.Join(must, " "))
	}
	return strings.Join(may, ", "), nil
}

// tensors are what this rank holds: parameters under nanoGPT's names, and the state of AdamW. Of
// sites that train apart the names are those of saved.
func (tr *trainer) tensors(names func(unit int) []named) (list []ckpt.Tensor, err error) {
	if tr.adam.disk != nil {
		return tr.adam.tensors(tr.model, func(unit, param int) (t ckpt.Tensor, err error) {
			t.Name, t.Shape, t.Offset, t.Size, err = tr.place(tr.units[unit], param)
			return t, err
		})
	}
	for i, u := range tr.all {
		of := []named{{"", tr.model.Shard(i)}, {"adamw.m.", tr.adam.m[i]}, {"adamw.v.", tr.adam.v[i]}}
		if names != nil {
			of = names(i)
		}
		for _, p := range tr.model.Pieces(i) {
			t := ckpt.Tensor{Lo: p.Lo, Hi: p.Hi}
			if t.Name, t.Shape, t.Offset, t.Size, err = tr.place(u, p.Param); err != nil {
				return nil, err
			}
			name, at, end := t.Name, p.At, p.At+p.Hi-p.Lo
			for _, x := range of {
				t.Name, t.Data = x.prefix+name, x.data[at:end]
				list = append(list, t)
			}
		}
	}
	if c := tr.cfg; tr.experts != nil { // which all ranks have
		list = append(list, ckpt.Tensor{Name: "mlp.router.bias", Shape: []int{c.Layers, c.Sparse.Experts},
			Hi: len(tr.experts.bias), Data: tr.experts.bias})
	}
	return list, nil
}

// place is the name and shape of a parameter, and the box of it that this rank works on.
func (tr *trainer) place(unit, param int) (name string, shape, offset, size []int, err error) {
	c := tr.cfg
	w := c.Width
	switch {
	case unit == 0:
		return c.Names(0)[param] + ".weight", []int{[]int{c.Vocab, c.Context}[param], w}, nil, nil, nil
	case unit == c.Layers+1 && param == 1 && c.Tied:
		return "wte.weight", []int{c.Vocab, w}, nil, nil, nil
	case unit == c.Layers+1 && param == 1:
		return "lm_head.weight", []int{w, c.Vocab}, nil, nil, nil
	case unit == c.Layers+1:
		return "ln_f.weight", []int{w}, nil, nil, nil
	case unit > c.Layers+1: // experts
		k := tr.mesh.Coord("ep")*c.Sparse.Experts/c.experts.ranks + param/2
		name = fmt.Sprintf("h.%d.mlp.experts.%d.%s.weight", unit-c.Layers-2, k, []string{"c_fc", "c_proj"}[param%2])
		shape, offset, size, err = layouts(w)[4+param%2].Box(tr.split.Rank(), c.tp)
		return name, shape, offset, size, err
	}
	name = fmt.Sprintf("h.%d.%s.weight", unit-1, c.Names(unit)[param])
	if c.Names(unit)[param] == "mlp.router" {
		return name, []int{w, c.Sparse.Experts}, nil, nil, nil
	}
	if !tr.divided(unit, param) {
		return name, []int{w}, nil, nil, nil
	}
	var l tp.Layout = layouts(w)[param]
	shape, offset, size, err = l.Box(tr.split.Rank(), c.tp)
	return name, shape, offset, size, err
}

// load sets the trainer to a checkpoint, and returns its step, and what this run does otherwise. It is collective.
func (tr *trainer) load(ctx context.Context, dir string) (step int, changed string, err error) {
	var p progress
	if err := ckpt.Load(ctx, tr.world, dir, &p, nil); err != nil { // before its tensors: of another model they are others
		return 0, "", err
	}
	if changed, err = p.compare(tr.now(p.Step), dir); err != nil { // on all ranks alike
		return 0, "", err
	}
	return p.Step, changed, tr.fill(ctx, dir, p.Step)
}

// fill sets the parameters and the state of AdamW to those of a checkpoint after a step. It is collective.
func (tr *trainer) fill(ctx context.Context, dir string, step int) error {
	names, err := tr.comms.sites.load(tr, dir, step)
	var ts []ckpt.Tensor
	if err == nil {
		ts, err = tr.tensors(names)
	}
	if err == nil {
		err = ckpt.Load(ctx, tr.world, dir, nil, ts)
	}
	if err == nil {
		err = tr.model.Loaded(ctx)
	}
	return err
}

// saver makes the checkpoints of a run, and removes old ones.
type saver struct {
	*resume.Saver
	tr *trainer
}

func newSaver(ctx context.Context, tr *trainer) (*saver, error) {
	s, err := resume.NewSaver(ctx, tr.world, tr.cfg.save, tr.cfg.keep)
	return &saver{s, tr}, err
}

// after starts the checkpoint of a step that it is time for. A nil saver has none.
func (s *saver) after(ctx context.Context, step int) error {
	if s == nil || s.tr.cfg.every == 0 || step == 0 || step%s.tr.cfg.every > 0 {
		return nil
	}
	return s.begin(ctx, step)
}

// again goes on from a step that a replacement has come back to, whose own checkpoint the loss may
// have cost. It is collective.
func (s *saver) again(ctx context.Context, from int) error {
	if s == nil {
		return nil
	}
	if err := s.upTo(ctx); err != nil {
		return err
	}
	return s.after(ctx, from)
}

// upTo has the saver know the last checkpoint there is: steps that are made again are the same, to
// the bit, so those up to it are not saved again. It is collective.
func (s *saver) upTo(ctx context.Context) error {
	dir, _, err := ckpt.Latest(ctx, s.tr.world, s.tr.cfg.save)
	if errors.Is(err, os.ErrNotExist) { // on all ranks
		return nil
	}
	var p progress
	if err == nil {
		err = ckpt.Load(ctx, s.tr.world, dir, &p, nil)
	}
	if err == nil {
		s.Saved = p.Step
	}
	return err
}

// begin starts the checkpoint of a step, once the one before is whole.
func (s *saver) begin(ctx context.Context, step int) error {
	if err := s.tr.comms.sites.flush(ctx); err != nil {
		return err
	}
	return s.Begin(ctx, step, func() (any, []ckpt.Tensor, error) {
		ts, err := s.tr.tensors(s.tr.comms.sites.saved(s.tr))
		if err != nil {
			return nil, nil, err
		}
		if err := s.tr.allFinite(ctx, ts); err != nil {
			return nil, nil, fmt.Errorf("step %d is not saved: %w", step, err)
		}
		return s.tr.now(step), ts, nil
	})
}

// allFinite is an error on all ranks if a rank has a number that is not finite among what it would
// save: with -keep 1 that would take the place of the last checkpoint that is of use.
func (tr *trainer) allFinite(ctx context.Context, ts []ckpt.Tensor) error {
	bad := []int{0}
	for _, t := range ts {
		if err := eachPart(t.Data, func(part []float32) {
			for _, x := range part {
				if v := float64(x); math.IsNaN(v) || math.IsInf(v, 0) {
					bad[0]++
				}
			}
		}); err != nil {
			tr.world.Abort(err)
			return err
		}
	}
	if err := ccl.AllReduce(ctx, tr.world, bad, bad, ccl.Sum); err != nil {
		return err
	}
	if bad[0] > 0 {
		return fmt.Errorf("the update has left %s that are not finite, in parameters or in AdamW's state: try a smaller -lr", count(bad[0], "number", "s"))
	}
	return nil
}
