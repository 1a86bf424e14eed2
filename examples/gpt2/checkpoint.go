package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
)

// progress is what a checkpoint keeps beside tensors.
type progress struct {
	Step, Rows, Heads int
	Seed              uint64
}

// prefixes are those of a parameter's tensors: itself, as Hugging Face names it, and the moments of AdamW.
var prefixes = [3]string{"", "adamw.m.", "adamw.v."}

// keepState begins the checkpoint of a step.
func (c *config) keepState(ctx context.Context, s *job.Saver, t trainer, step int) error {
	return s.Begin(ctx, step, func() (any, []ckpt.Tensor, error) {
		list, err := t.tensors(ctx, true)
		return progress{step, c.rows, c.heads, c.seed}, list, err
	})
}

// errNoCheckpoint says that there was never a whole one.
var errNoCheckpoint = errors.New("nothing to resume from")

// resume sets a trainer to the last checkpoint, whatever its layout was, and returns its step.
func resume(ctx context.Context, world *ccl.Comm, c *config, t trainer, out io.Writer) (int, error) {
	dir, passed, err := ckpt.Latest(ctx, world, c.save)
	for _, p := range passed {
		fmt.Fprintf(out, "passed over: %v\n", p)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errNoCheckpoint, err)
	}
	if err != nil {
		return 0, err
	}
	list, err := t.tensors(ctx, false)
	if err != nil {
		return 0, err
	}
	var p progress
	if err := ckpt.Load(ctx, world, dir, &p, list); err != nil {
		return 0, err
	}
	switch {
	case p.Seed != c.seed || p.Rows != c.rows:
		err = fmt.Errorf("%s was trained with -seed %d -rows %d: give these, so that the data go on as they did", dir,
			p.Seed, p.Rows)
	case p.Heads != c.heads:
		err = fmt.Errorf("%s was trained with -heads %d: give that, too", dir, p.Heads)
	}
	if err != nil { // on all ranks alike
		return 0, err
	}
	fmt.Fprintf(out, "resumed from step %d in %s\n", p.Step, c.save)
	return p.Step, t.restore(ctx, list)
}

// tensors of a replica are whole on each rank; one of them writes each.
func (r *replica) tensors(_ context.Context, filled bool) (list []ckpt.Tensor, err error) {
	n := len(r.ps)
	for i, b := range r.state {
		p := r.ps[i%n]
		x := make([]float32, p.size())
		if filled {
			if err := xla.Get(b, x); err != nil {
				return nil, err
			}
		}
		list = append(list, ckpt.Tensor{Name: prefixes[i/n] + p.name, Shape: p.dims, Data: x})
	}
	return list, nil
}

func (r *replica) restore(_ context.Context, list []ckpt.Tensor) error {
	for i, t := range list {
		b, err := xla.Put(r.m.client, t.Data.([]float32), t.Shape...)
		if err != nil {
			return err
		}
		if err := r.state[i].Free(); err != nil {
			return errors.Join(err, b.Free())
		}
		r.state[i] = b
	}
	return nil
}

// tensors of shards are pieces of parameters: the master's, and of its moments. They are the model's own memory.
func (z *sharded[P]) tensors(ctx context.Context, _ bool) ([]ckpt.Tensor, error) {
	if err := z.m.settle(ctx); err != nil {
		return nil, err
	}
	return z.model.Tensors(func(unit, i int) ckpt.Tensor {
		p := z.ps[z.first[unit]+i]
		return ckpt.Tensor{Name: p.name, Shape: p.dims}
	}, zero.State[float32]{Prefix: prefixes[1], Bufs: z.moments[0]},
		zero.State[float32]{Prefix: prefixes[2], Bufs: z.moments[1]})
}

func (z *sharded[P]) restore(ctx context.Context, _ []ckpt.Tensor) error { return z.model.Loaded(ctx) }

// start makes the saver and resumes, or begins with the weights of -hf, as the flags say; it
// returns the step that was reached.
func (r *run) start(ctx context.Context, world *ccl.Comm, c *config, t trainer,
	out io.Writer) (s *job.Saver, step int, err error) {
	resumed := false
	if c.save != "" {
		if world.Rank() == 0 {
			if err := os.MkdirAll(c.save, 0o777); err != nil {
				world.Abort(err)
				return nil, 0, err
			}
		}
		if s, err = job.NewSaver(ctx, world, c.save, c.keep); err != nil {
			return nil, 0, err
		}
	}
	if c.recover && !c.resume { // what a lost rank would go on from must be of this run
		switch dir, _, failed := ckpt.Latest(ctx, world, c.save); {
		case failed == nil:
			err = fmt.Errorf("-save %s has %s: resume from it with -resume, or name another directory", c.save,
				filepath.Base(dir))
		case !errors.Is(failed, os.ErrNotExist):
			err = failed
		}
	}
	if err == nil && c.resume {
		step, err = resume(ctx, world, c, t, out)
		if r.again && errors.Is(err, errNoCheckpoint) { // a rank was lost before there was one: all ranks have this error
			fmt.Fprintf(out, "there is no checkpoint in %s yet: beginning again\n", c.save)
			err = nil
		} else {
			resumed, s.Saved = true, step
		}
	}
	if err == nil && c.hf != "" && !resumed {
		err = c.begin(ctx, world, t, out)
	}
	if err != nil && s != nil {
		err = errors.Join(err, s.Close(ctx))
		s = nil
	}
	return s, step, err
}
