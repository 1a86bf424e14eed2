package main

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// trainer trains a model on this rank's rows.
type trainer interface {
	// step makes a step with the rows of this rank, [B,T+1] for each micro batch, and returns their
	// losses, which need not be computed yet.
	step(ctx context.Context, n int, lr float64, batches []*xla.Buffer) (losses []*xla.Buffer, err error)
	// tensors are what this rank has of a checkpoint: with its state, or to be filled for restore.
	tensors(ctx context.Context, filled bool) ([]ckpt.Tensor, error)
	restore(ctx context.Context, list []ckpt.Tensor) error
	close() error
}

// replica has all parameters and all state on every rank. One rank runs one program a step, for gradients and update;
// several run two, and average the gradients between them, in XLA's own buffers.
type replica struct {
	m     *machine
	cfg   *config
	ps    []param
	state []*xla.Buffer // parameters, first moments, second moments

	whole, grads, more, apply *xla.Program
}

// args are the arguments for the state, donated to results from 0 on, or parameters alone.
func args(f *hlo.Func, ps []param, times int) (list []value) {
	for i := range times {
		for k, p := range ps {
			if times == 1 {
				list = append(list, f.Arg(hlo.F32, p.dims...))
			} else {
				list = append(list, f.Donated(i*len(ps)+k, hlo.F32, p.dims...))
			}
		}
	}
	return list
}

func newReplica(ctx context.Context, m *machine, c *config) (r *replica, err error) {
	r = &replica{m: m, cfg: c, ps: c.params()}
	n := len(r.ps)
	batch := func(f *hlo.Func) value { return f.Arg(hlo.I32, c.batch(), c.context+1) }
	build := func(p **xla.Program, name string, write func(f *hlo.Func) []value) {
		if err == nil {
			*p, err = m.build(ctx, name, write)
		}
	}
	if m.world.Size() == 1 && c.micro == 1 {
		build(&r.whole, "step", func(f *hlo.Func) []value { return wholeStep(c, f) })
	} else {
		build(&r.grads, "gradients", func(f *hlo.Func) []value {
			p := args(f, r.ps, 1)
			loss := c.loss(p, batch(f))
			return append(scaled(hlo.Grad(loss, p...), c.micro), loss)
		})
		if c.micro > 1 {
			build(&r.more, "more_gradients", func(f *hlo.Func) []value {
				var sum []value
				for k, p := range r.ps {
					sum = append(sum, f.Donated(k, hlo.F32, p.dims...))
				}
				p := args(f, r.ps, 1)
				loss := c.loss(p, batch(f))
				g := scaled(hlo.Grad(loss, p...), c.micro)
				for k := range g {
					g[k] = sum[k].Add(g[k])
				}
				return append(g, loss)
			})
		}
		build(&r.apply, "update", func(f *hlo.Func) []value {
			s := args(f, r.ps, 3)
			return updates(r.ps, s[:n], s[n:2*n], s[2*n:], args(f, r.ps, 1), newHyper(f), c.clip)
		})
	}
	for i := range 3 * n {
		if err != nil {
			break
		}
		p := r.ps[i%n]
		x := make([]float32, p.size())
		if i < n {
			x = initial(c, i)
		}
		var b *xla.Buffer
		if b, err = xla.Put(m.client, x, p.dims...); err == nil {
			r.state = append(r.state, b)
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// wholeStep is a step of one rank: the state after it, and the loss.
func wholeStep(c *config, f *hlo.Func) []value {
	ps := c.params()
	n, s := len(ps), args(f, ps, 3)
	loss := c.loss(s[:n], f.Arg(hlo.I32, c.batch(), c.context+1))
	return append(updates(ps, s[:n], s[n:2*n], s[2*n:], hlo.Grad(loss, s[:n]...), newHyper(f), c.clip), loss)
}

// scaled are gradients of one of n micro batches, as parts of the mean's.
func scaled(g []value, n int) []value {
	if n > 1 {
		for i, x := range g {
			g[i] = x.MulC(1 / float64(n))
		}
	}
	return g
}

func (r *replica) step(ctx context.Context, n int, lr float64, batches []*xla.Buffer) (_ []*xla.Buffer, err error) {
	h, err := r.m.scalars(n, lr)
	if err != nil {
		return nil, err
	}
	defer h.Free()
	if r.whole != nil {
		out, err := r.whole.Run(len(r.state), append(slices.Clone(r.state), batches[0], h)...)
		if err != nil {
			return nil, err
		}
		r.state = out[:len(r.state)]
		return out[len(r.state):], nil
	}
	k := len(r.ps)
	var grads, losses []*xla.Buffer
	defer func() {
		if err != nil {
			err = errors.Join(err, xla.FreeAll(append(grads, losses...)...))
		}
	}()
	for i, b := range batches {
		program, in := r.grads, []*xla.Buffer(nil)
		if i > 0 {
			program, in = r.more, grads
		}
		out, err := program.Run(len(in), append(append(slices.Clone(in), r.state[:k]...), b)...)
		if err != nil {
			return nil, err
		}
		grads, losses = out[:k], append(losses, out[k])
	}
	if err := r.average(ctx, grads); err != nil {
		return nil, err
	}
	out, err := r.apply.Run(3*k, append(append(slices.Clone(r.state), grads...), h)...)
	if err != nil {
		return nil, err
	}
	r.state = out
	return losses, xla.FreeAll(grads...)
}

// average makes gradients the means over the ranks. The stream waits for the program, or this call
// does; then this call waits for the stream, so that the next program does not begin before.
func (r *replica) average(ctx context.Context, grads []*xla.Buffer) error {
	if r.m.world.Size() == 1 {
		return nil
	}
	s := r.m.order()
	bufs := make([]ccl.Buf, len(grads))
	for i, g := range grads {
		var err error
		if r.cfg.wait {
			bufs[i], err = xla.Buf[float32](g)
		} else {
			bufs[i], err = xla.BufOn[float32](g, s)
		}
		if err != nil {
			return err
		}
	}
	return r.m.world.On(s).Group(func(q ccl.Queue) error {
		for _, b := range bufs {
			q.AllReduce(b, ccl.InPlace(), ccl.Avg)
		}
		return nil
	}).Wait(ctx)
}

func (r *replica) close() error { return xla.FreeAll(r.state...) }
