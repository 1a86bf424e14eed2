package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// sharded is package zero around programs for the kinds of layers, whose number does not grow with
// the model: XLA reads the parameters of a unit in place, and the gradients that it computes are
// copied into zero's memory once. P is the type of parameters and gradients; masters are float32.
type sharded[P zero.Float] struct {
	m     *machine
	cfg   *config
	mem   *memory
	dev   *device.Memory // on a GPU, else nil
	model *zero.Model[P, float32]
	ps    []param
	units [][]int // lengths of parameters
	first []int   // of each unit: its first parameter
	lens  []int   // of each unit: elements

	embed, layer, head, layerBack, embedBack *xla.Program
	adam                                     map[piece]*xla.Program
	moments                                  [2][]ccl.Buf // of AdamW, by unit, laid out as the shards
}

// piece is what a program of AdamW's depends on.
type piece struct {
	n      int
	decays bool
}

func newSharded[P zero.Float](ctx context.Context, m *machine, c *config) (z *sharded[P], err error) {
	z = &sharded[P]{m: m, cfg: c, ps: c.params(), mem: newMemory(m), adam: map[piece]*xla.Program{}}
	for i, p := range z.ps {
		if p.unit == len(z.units) {
			z.units, z.first, z.lens = append(z.units, nil), append(z.first, i), append(z.lens, 0)
		}
		z.units[p.unit] = append(z.units[p.unit], p.size())
		z.lens[p.unit] += p.size()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, z.close())
		}
	}()
	o := &zero.Options{Stage: c.stage, Clip: c.clip, Micro: c.micro, Memory: z.mem, Offload: c.offload}
	if m.stream != nil {
		if z.dev, err = device.New(m.device, m.stream); err != nil {
			return z, err
		}
		o.Memory = z.dev
	}
	state := o.Memory // where that of AdamW is
	if c.offload {
		state = z.mem
	}
	z.model, err = zero.New[P, float32](ctx, m.world, z.units, o)
	if err != nil {
		return z, err
	}
	for u := range z.units {
		var full [][]float32
		for i := range z.units[u] {
			full = append(full, initial(c, z.first[u]+i))
		}
		if err := z.model.Load(ctx, u, full, 0); err != nil {
			return z, err
		}
		for i := range z.moments {
			b, err := state.Alloc(ccl.TypeFloat32, z.model.ShardBuf(u).Len())
			if err != nil {
				return z, err
			}
			z.moments[i] = append(z.moments[i], b)
		}
	}
	if err := z.model.Loaded(ctx); err != nil {
		return z, err
	}
	return z, z.programs(ctx)
}

// p is the type of parameters in programs.
func (z *sharded[P]) p() hlo.Type { return typeOf(ccl.TypeOf[P]()) }

// unit is an argument for unit u, cut into parameters.
func (z *sharded[P]) unit(f *hlo.Func, u int) (list []value) {
	flat, at := f.Arg(z.p(), z.lens[u]), 0
	for i, n := range z.units[u] {
		list = append(list, flat.Cut(0, at, at+n).Reshape(z.ps[z.first[u]+i].dims...))
		at += n
	}
	return list
}

// joined are gradients as one array, as zero has a unit.
func joined(g []value) value {
	flat := make([]value, len(g))
	for i, x := range g {
		flat[i] = x.Reshape(x.Len())
	}
	return hlo.Cat(0, flat...)
}

// programs compiles one for each kind of layer. Those of the backward pass compute their layer anew.
func (z *sharded[P]) programs(ctx context.Context) (err error) {
	c := z.cfg
	n, last := c.batch()*c.context, len(z.units)-1
	batch := func(f *hlo.Func) value { return f.Arg(hlo.I32, c.batch(), c.context+1) }
	stream := func(f *hlo.Func) value { return f.Arg(c.res, n, c.width) }
	// back are the gradients of y for what it was made of, given y's own.
	back := func(y, dy value, of ...value) []value {
		return hlo.Grad(y.As(hlo.F32).Mul(dy.As(hlo.F32)).SumAll(), of...)
	}
	build := func(p **xla.Program, name string, write func(f *hlo.Func) []value) {
		if err == nil {
			*p, err = z.m.build(ctx, name, write)
		}
	}
	build(&z.embed, "embed", func(f *hlo.Func) []value {
		p := z.unit(f, 0)
		in, _ := c.tokens(batch(f))
		return []value{c.shape.embed(p[0], p[1], in)}
	})
	build(&z.layer, "layer", func(f *hlo.Func) []value {
		p := z.unit(f, 1)
		return []value{c.shape.layer(stream(f), p)}
	})
	build(&z.head, "head", func(f *hlo.Func) []value {
		p, e := z.unit(f, last), z.unit(f, 0)
		x := stream(f)
		_, want := c.tokens(batch(f))
		loss := c.shape.head(x, p, e[0], want)
		g := hlo.Grad(loss, append([]value{x, e[0]}, p...)...)
		return []value{g[0], joined(g[2:]), g[1], loss}
	})
	build(&z.layerBack, "layer_back", func(f *hlo.Func) []value {
		p := z.unit(f, 1)
		x, dy := stream(f), stream(f)
		g := back(c.shape.layer(x, p), dy, append([]value{x}, p...)...)
		return []value{g[0], joined(g[1:])}
	})
	build(&z.embedBack, "embed_back", func(f *hlo.Func) []value {
		p := z.unit(f, 0)
		dy, head := stream(f), f.Arg(z.p(), c.vocab, c.width)
		in, _ := c.tokens(batch(f))
		g := back(c.shape.embed(p[0], p[1], in), dy, p...)
		return []value{joined([]value{g[0].Add(head), g[1]})}
	})
	return err
}

func (z *sharded[P]) step(ctx context.Context, n int, lr float64, batches []*xla.Buffer) ([]*xla.Buffer, error) {
	var losses []*xla.Buffer
	for _, b := range batches {
		loss, err := z.batch(ctx, b)
		if err != nil {
			return nil, err
		}
		losses = append(losses, loss)
	}
	if z.cfg.offload {
		return losses, z.model.Step(ctx, func(p zero.Piece, w, g []float32) error {
			m, v := z.momentsOf(p)
			avg, _ := ccl.SliceOf[float32](m)
			sq, _ := ccl.SliceOf[float32](v)
			return optim.Apply(z.adamOf(p, lr), n, w, g, avg, sq)
		})
	}
	if z.dev != nil {
		return losses, z.model.StepBufs(ctx, func(p zero.Piece, w, g ccl.Buf) error {
			m, v := z.momentsOf(p)
			return z.dev.AdamW(z.adamOf(p, lr), n, w, g, m, v)
		})
	}
	h, err := z.m.scalars(n, lr)
	if err != nil {
		return nil, err
	}
	err = z.model.StepBufs(ctx, func(p zero.Piece, w, g ccl.Buf) error { return z.update(ctx, p, w, g, h) })
	return losses, errors.Join(err, h.Free())
}

// momentsOf are those of a piece.
func (z *sharded[P]) momentsOf(p zero.Piece) (m, v ccl.Buf) {
	end := p.At + p.Hi - p.Lo
	return z.moments[0][p.Unit].From(p.At, end), z.moments[1][p.Unit].From(p.At, end)
}

// decays reports whether weight decay is for a piece.
func (z *sharded[P]) decays(p zero.Piece) bool { return z.ps[z.first[p.Unit]+p.Param].decay }

// adamOf is AdamW for a piece, as package optim has it.
func (z *sharded[P]) adamOf(p zero.Piece, lr float64) optim.AdamW {
	h := optim.AdamW{LR: lr, Beta1: beta1, Beta2: beta2, Eps: epsilon}
	if z.decays(p) {
		h.Decay = decay
	}
	return h
}

// pass is a walk over the units: the first error ends it.
type pass[P zero.Float] struct {
	z    *sharded[P]
	ctx  context.Context
	err  error
	live []*xla.Buffer // freed at its end
}

// params are the parameters of a unit as an argument, valid until done.
func (w *pass[P]) params(u int) *xla.Buffer {
	if w.err != nil {
		return nil
	}
	bufs, err := w.z.model.ParamBufs(w.ctx, u)
	if err == nil && w.z.dev != nil && w.z.cfg.stage == 0 { // else they were gathered, and waited for
		err = w.z.m.settle(w.ctx)
	}
	if err == nil {
		var v *xla.Buffer
		if v, err = w.z.mem.view(whole(bufs)); err == nil {
			return v
		}
	}
	w.err = fmt.Errorf("unit %d: %w", u, err)
	return nil
}

// run queues a program.
func (w *pass[P]) run(p *xla.Program, in ...*xla.Buffer) []*xla.Buffer {
	if w.err == nil {
		var out []*xla.Buffer
		if out, w.err = p.Run(0, in...); w.err == nil {
			w.live = append(w.live, out...)
			return out
		}
	}
	return make([]*xla.Buffer, p.Results())
}

// done waits for a result, so that the units that went into it may be released: their memory then serves others.
func (w *pass[P]) done(result *xla.Buffer, view *xla.Buffer, u int) {
	if w.err == nil {
		w.err = result.Wait()
	}
	if w.err == nil {
		w.err = view.Free()
		w.z.model.Release(u)
	}
}

// reduce hands the gradients of a unit to zero.
func (w *pass[P]) reduce(u int, g *xla.Buffer) {
	if w.err != nil {
		return
	}
	bufs, err := w.z.model.GradBufs(w.ctx, u)
	if err == nil {
		err = w.z.take(w.ctx, whole(bufs), g, w.z.cfg.micro > 1)
	}
	if err == nil {
		err = w.z.model.Reduce(u)
	}
	w.err = err
}

// take copies the gradients of a unit to zero's memory, or adds them there. What a kernel reads XLA
// has computed before, and XLA's are freed when it has read them.
func (z *sharded[P]) take(ctx context.Context, dst ccl.Buf, g *xla.Buffer, add bool) error {
	if z.dev == nil && !add {
		return z.mem.copyTo(dst, g)
	}
	from, err := xla.Buf[P](g)
	switch {
	case err != nil:
		return err
	case z.dev == nil:
		return z.mem.Add(dst, from)
	case add:
		err = z.dev.Add(dst, from)
	default:
		err = z.dev.Convert(dst, from)
	}
	return errors.Join(err, z.m.settle(ctx))
}

// whole is a unit's memory: its parameters lie one behind the other.
func whole(bufs []ccl.Buf) ccl.Buf {
	all := bufs[0]
	for _, b := range bufs[1:] {
		all, _ = all.Join(b)
	}
	return all
}

// batch goes forward and backward with one micro batch, and returns its loss.
func (z *sharded[P]) batch(ctx context.Context, b *xla.Buffer) (loss *xla.Buffer, err error) {
	w := &pass[P]{z: z, ctx: ctx}
	layers := len(z.units) - 2
	view := w.params(0)
	x := w.run(z.embed, view, b)[0]
	w.done(x, view, 0)
	xs := []*xla.Buffer{x}
	for l := range layers {
		view = w.params(1 + l)
		x = w.run(z.layer, view, x)[0]
		w.done(x, view, 1+l)
		xs = append(xs, x)
	}
	view, embeddings := w.params(layers+1), w.params(0)
	h := w.run(z.head, view, embeddings, x, b) // the gradients of x, the last unit and wte, and the loss
	w.done(h[0], embeddings, 0)
	w.done(h[0], view, layers+1)
	w.reduce(layers+1, h[1])
	dy := h[0]
	for l := layers - 1; l >= 0; l-- {
		view = w.params(1 + l)
		g := w.run(z.layerBack, view, xs[l], dy)
		w.done(g[1], view, 1+l)
		w.reduce(1+l, g[1])
		dy = g[0]
	}
	view = w.params(0)
	g := w.run(z.embedBack, view, dy, h[2], b)[0]
	w.done(g, view, 0)
	w.reduce(0, g)
	for _, x := range w.live {
		if w.err != nil || x != h[3] {
			err = errors.Join(err, x.Free())
		}
	}
	return h[3], errors.Join(w.err, err)
}

// update is AdamW on a piece of a shard, by a program.
func (z *sharded[P]) update(ctx context.Context, p zero.Piece, w, g ccl.Buf, h *xla.Buffer) (err error) {
	if w.Len() == 0 {
		return nil
	}
	key := piece{w.Len(), z.decays(p)}
	program := z.adam[key]
	if program == nil {
		program, err = z.m.own(fmt.Sprintf("adamw_%d_%v", key.n, key.decays), func(f *hlo.Func) []value {
			m, v, w, g := f.Arg(hlo.F32, key.n), f.Arg(hlo.F32, key.n), f.Arg(hlo.F32, key.n), f.Arg(hlo.F32, key.n)
			w, m, v = newHyper(f).adamw(w, m, v, g, key.decays)
			return []value{m, v, w}
		})
		if err != nil {
			return err
		}
		z.adam[key] = program
	}
	m, v := z.momentsOf(p)
	out, err := z.mem.apply(ctx, program, []ccl.Buf{m, v, w, g}, h)
	if err != nil {
		return err
	}
	for i, to := range []ccl.Buf{m, v, w} {
		err = errors.Join(err, z.mem.copyTo(to, out[i]))
	}
	return errors.Join(err, xla.FreeAll(out...))
}

func (z *sharded[P]) close() error {
	var errs []error
	if z.model != nil {
		errs = append(errs, z.model.Close())
	}
	if z.dev != nil {
		errs = append(errs, z.dev.Close())
	}
	return errors.Join(errs...)
}
