package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/xla"
)

// progress is what a checkpoint keeps beside tensors.
type progress struct {
	Step, Rows, Heads int
	Seed              uint64
}

// prefixes are those of a parameter's tensors: itself, as Hugging Face names it, and the moments of AdamW.
var prefixes = [3]string{"", "adamw.m.", "adamw.v."}

// tensor is elements lo to hi of parameter p, of the kind that a prefix says.
func tensor(p param, kind, lo, hi int, data []float32) ckpt.Tensor {
	return ckpt.Tensor{Name: prefixes[kind] + p.name, Shape: p.dims, Lo: lo, Hi: hi, Data: data}
}

// saver makes the checkpoints of a run, and removes old ones.
type saver struct {
	*ckpt.Saver
	world *ccl.Comm
	cfg   *config
	saved int // step of the last one; -1: none
}

func newSaver(ctx context.Context, world *ccl.Comm, c *config) (*saver, error) {
	s, err := ckpt.NewSaver(ctx, world)
	return &saver{s, world, c, -1}, err
}

// begin copies the state of a step to the host, and has it written while training goes on.
func (s *saver) begin(ctx context.Context, t trainer, step int) error {
	if step == s.saved {
		return nil
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	list, err := t.tensors(ctx, true)
	if err != nil {
		return err
	}
	if err := s.Save(ctx, ckpt.Step(s.cfg.save, step), progress{step, s.cfg.rows, s.cfg.heads, s.cfg.seed}, list); err != nil {
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
	return ckpt.Keep(ctx, s.world, s.cfg.save, s.cfg.keep)
}

// resume sets a trainer to the last checkpoint, whatever its layout was, and returns its step.
func resume(ctx context.Context, world *ccl.Comm, c *config, t trainer, out io.Writer) (int, error) {
	dir, passed, err := ckpt.Latest(ctx, world, c.save)
	for _, p := range passed {
		fmt.Fprintf(out, "passed over: %v\n", p)
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
		err = fmt.Errorf("%s was trained with -seed %d -rows %d: give these, so that the data go on as they did", dir, p.Seed, p.Rows)
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
		list = append(list, tensor(p, i/n, 0, len(x), x))
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

// tensors of shards are pieces of parameters: the master's, and of its moments.
func (z *sharded[P]) tensors(ctx context.Context, filled bool) (list []ckpt.Tensor, err error) {
	for u := range z.units {
		for _, p := range z.model.Pieces(u) {
			n, moments := p.Hi-p.Lo, z.moments[[2]int{u, p.Param}]
			var onDevice [2]ccl.Buf
			if z.dev != nil {
				onDevice = z.dev.moments[[2]int{u, p.Param}]
			}
			for kind := range prefixes {
				x := make([]float32, n)
				switch {
				case !filled:
				case kind > 0 && z.cfg.offload:
					copy(x, z.onHost.of(u, p.Param, n)[kind-1])
				case kind == 0:
					err = z.mem.read(ctx, x, z.model.ShardBuf(u).From(p.At, p.At+n))
				case onDevice[kind-1].Len() == n:
					err = z.mem.read(ctx, x, onDevice[kind-1])
				case moments[kind-1] != nil:
					err = xla.Get(moments[kind-1], x)
				}
				if err != nil {
					return nil, err
				}
				list = append(list, tensor(z.ps[z.first[u]+p.Param], kind, p.Lo, p.Hi, x))
			}
		}
	}
	return list, nil
}

func (z *sharded[P]) restore(ctx context.Context, list []ckpt.Tensor) error {
	for u := range z.units {
		for _, p := range z.model.Pieces(u) {
			x := [3][]float32{}
			for kind := range x {
				x[kind], list = list[0].Data.([]float32), list[1:]
			}
			if err := z.mem.write(ctx, z.model.ShardBuf(u).From(p.At, p.At+p.Hi-p.Lo), x[0]); err != nil {
				return err
			}
			at := [2]int{u, p.Param}
			if z.cfg.offload {
				z.onHost[at] = [2][]float32{x[1], x[2]}
				continue
			}
			if z.dev != nil {
				if err := z.dev.restore(at, x[1:]); err != nil {
					return err
				}
				continue
			}
			old, mv := z.moments[at], [2]*xla.Buffer{}
			for i := range mv {
				var err error
				if mv[i], err = xla.Put(z.m.client, x[1+i], len(x[1+i])); err != nil {
					return errors.Join(err, xla.FreeAll(mv[:i]...))
				}
			}
			z.moments[at] = mv
			if err := xla.FreeAll(old[:]...); err != nil {
				return err
			}
		}
	}
	return z.model.Loaded(ctx)
}

// read copies float32 memory to the host, and write copies to it, once the stream has come so far.
func (k *memory) read(ctx context.Context, dst []float32, src ccl.Buf) error {
	return k.move(ctx, src, func(s []float32) { copy(dst, s) }, func(d *cuda.Mem[float32]) error { return d.Get(dst) })
}

func (k *memory) write(ctx context.Context, dst ccl.Buf, src []float32) error {
	return k.move(ctx, dst, func(s []float32) { copy(s, src) }, func(d *cuda.Mem[float32]) error { return d.Put(src) })
}

func (k *memory) move(ctx context.Context, b ccl.Buf, onHost func([]float32), onDevice func(*cuda.Mem[float32]) error) error {
	if err := k.m.settle(ctx); err != nil {
		return err
	}
	if s, ok := ccl.SliceOf[float32](b); ok {
		onHost(s)
		return nil
	}
	d, err := deviceMemory[float32](k, b)
	if err != nil {
		return err
	}
	return onDevice(d)
}

// start makes the saver and resumes, or begins with the weights of -hf, as the flags say; it returns the step that was reached.
func (r *run) start(ctx context.Context, world *ccl.Comm, c *config, t trainer, out io.Writer) (s *saver, step int, err error) {
	resumed := false
	if c.save != "" {
		if world.Rank() == 0 {
			if err := os.MkdirAll(c.save, 0o777); err != nil {
				world.Abort(err)
				return nil, 0, err
			}
		}
		if s, err = newSaver(ctx, world, c); err != nil {
			return nil, 0, err
		}
	}
	if c.resume {
		step, err = resume(ctx, world, c, t, out)
		if r.again && errors.Is(err, os.ErrNotExist) { // a rank was lost before there was one: all ranks have this error
			fmt.Fprintf(out, "there is no checkpoint in %s yet: beginning again\n", c.save)
			err = nil
		} else {
			resumed, s.saved = true, step
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
