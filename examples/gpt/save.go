package main

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/tp"
)

// progress is what a checkpoint keeps beside tensors.
type progress struct {
	Step, Rows int
	Seed       uint64
	Chars      []byte
	Heads      int // which no tensor shows; 0: not known
	Tied       bool
}

// tensors are what this rank holds: parameters under nanoGPT's names, and the state of AdamW.
func (tr *trainer) tensors() (list []ckpt.Tensor, err error) {
	for i, u := range tr.units {
		for _, p := range tr.model.Pieces(i) {
			t := ckpt.Tensor{Lo: p.Lo, Hi: p.Hi}
			if t.Name, t.Shape, t.Offset, t.Size, err = tr.place(u, p.Param); err != nil {
				return nil, err
			}
			name, at, end := t.Name, p.At, p.At+p.Hi-p.Lo
			for _, x := range []struct {
				prefix string
				data   []float32
			}{{"", tr.model.Shard(i)}, {"adamw.m.", tr.m[i]}, {"adamw.v.", tr.v[i]}} {
				t.Name, t.Data = x.prefix+name, x.data[at:end]
				list = append(list, t)
			}
		}
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
	}
	name = fmt.Sprintf("h.%d.%s.weight", unit-1, c.Names(unit)[param])
	if !tr.divided(unit, param) {
		return name, []int{w}, nil, nil, nil
	}
	var l tp.Layout = layouts(w)[param]
	shape, offset, size, err = l.Box(tr.split.Rank(), c.tp)
	return name, shape, offset, size, err
}

// load sets the trainer to a checkpoint, and returns its step. It is collective.
func (tr *trainer) load(ctx context.Context, dir string) (int, error) {
	ts, err := tr.tensors()
	if err != nil {
		return 0, err
	}
	var p progress
	if err := ckpt.Load(ctx, tr.world, dir, &p, ts); err != nil {
		return 0, err
	}
	switch {
	case p.Seed != tr.cfg.seed || p.Rows != tr.cfg.rows:
		err = fmt.Errorf("%s was trained with -seed %d -rows %d: give these, so that the data go on as they did", dir, p.Seed, p.Rows)
	case p.Heads != 0 && p.Heads != tr.cfg.Heads:
		err = fmt.Errorf("%s was trained with -heads %d: give that, too", dir, p.Heads)
	case p.Heads != 0 && p.Tied != tr.cfg.Tied:
		err = fmt.Errorf("%s was trained with -tied=%t: give that, too", dir, p.Tied)
	case string(p.Chars) != string(tr.text.chars):
		err = fmt.Errorf("%s was trained on other characters than -data has", dir)
	}
	if err != nil { // on all ranks alike
		return 0, err
	}
	return p.Step, tr.model.Loaded(ctx)
}

// saver makes the checkpoints of a run, and removes old ones.
type saver struct {
	*ckpt.Saver
	tr    *trainer
	saved int // step of the last one; -1: none
}

func newSaver(ctx context.Context, tr *trainer) (*saver, error) {
	s, err := ckpt.NewSaver(ctx, tr.world)
	return &saver{s, tr, -1}, err
}

// begin starts the checkpoint of a step, once the one before is whole.
func (s *saver) begin(ctx context.Context, step int) error {
	if step == s.saved {
		return nil
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	ts, err := s.tr.tensors()
	if err != nil {
		return err
	}
	c := s.tr.cfg
	if err := s.Save(ctx, ckpt.Step(c.save, step), progress{step, c.rows, c.seed, s.tr.text.chars, c.Heads, c.Tied}, ts); err != nil {
		return err
	}
	s.saved = step
	return nil
}

// finish waits for the checkpoint under way, and removes old ones.
func (s *saver) finish(ctx context.Context) error {
	if err := s.Wait(ctx); err != nil || s.saved < 0 {
		return err
	}
	return ckpt.Keep(ctx, s.tr.world, s.tr.cfg.save, s.tr.cfg.keep)
}
