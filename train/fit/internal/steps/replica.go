package steps

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/train/fit/update"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Prefixes are those of a parameter's tensors in a checkpoint: itself, AdamW's moments, the moving average.
var Prefixes = []string{"", "adamw.m.", "adamw.v.", "ema."}

// replica has all that is trained, and its state, on every rank. One rank runs one program a step, for gradients and
// update; several run two, and average the gradients between them, in XLA's own buffers.
type replica struct {
	t     *units.Set
	ps    []nn.Param
	first []int         // of a unit: its first parameter
	sorts int           // parameters, two moments, perhaps an average
	state []*xla.Buffer // by sort

	whole, grads, more, apply *xla.Program
}

func newReplica(ctx context.Context, t *units.Set) (r *replica, err error) {
	r = &replica{t: t, sorts: 3}
	if t.O.EMA > 0 {
		r.sorts = 4
	}
	var first [][]float32
	for u := range t.Params {
		r.first = append(r.first, len(r.ps))
		r.ps, first = append(r.ps, t.Of(u, false)...), append(first, t.Initial(u, false)...)
	}
	r.first = append(r.first, len(r.ps))
	n := len(r.ps)
	build := func(p **xla.Program, name string, write func(f *hlo.Func) []nn.V) {
		if err == nil {
			*p, err = t.M.Build(ctx, name, write)
		}
	}
	if t.M.World().Size() == 1 && t.O.Micro == 1 {
		build(&r.whole, "step", func(f *hlo.Func) []nn.V { return writeStep(t, f, r.ps, r.sorts) })
	} else {
		build(&r.grads, "gradients", func(f *hlo.Func) []nn.V {
			loss, g := gradients(t, f, r.ps, args(f, r.ps, 1))
			return append(scaled(g, t.O.Micro), loss)
		})
		if t.O.Micro > 1 {
			build(&r.more, "more_gradients", func(f *hlo.Func) []nn.V {
				var sum []nn.V
				for k, p := range r.ps {
					sum = append(sum, f.Donated(k, hlo.F32, p.Dims...))
				}
				loss, g := gradients(t, f, r.ps, args(f, r.ps, 1))
				g = scaled(g, t.O.Micro)
				for k := range g {
					g[k] = sum[k].Add(g[k])
				}
				return append(g, loss)
			})
		}
		build(&r.apply, "update", func(f *hlo.Func) []nn.V {
			s, g := args(f, r.ps, r.sorts), args(f, r.ps, 1)
			return updates(t, r.ps, s, g, f.Arg(hlo.F32), update.NewHyper(f, t.O.Adam))
		})
	}
	for i := range r.sorts * n {
		if err != nil {
			break
		}
		x := make([]float32, r.ps[i%n].Len())
		if i < n || i >= 3*n { // an average begins with what it is of
			copy(x, first[i%n])
		}
		var b *xla.Buffer
		if b, err = xla.Put(t.M.Client(), x, r.ps[i%n].Dims...); err == nil {
			r.state = append(r.state, b)
		}
	}
	if err != nil {
		return r, errors.Join(err, r.Close())
	}
	return r, nil
}

// args are arguments for parameters: alone, or all sorts of state, donated to results from 0 on.
func args(f *hlo.Func, ps []nn.Param, sorts int) (list []nn.V) {
	for i := range sorts {
		for k, p := range ps {
			if sorts == 1 {
				list = append(list, f.Arg(hlo.F32, p.Dims...))
			} else {
				list = append(list, f.Donated(i*len(ps)+k, hlo.F32, p.Dims...))
			}
		}
	}
	return list
}

// gradients adds the arguments of a batch and of what is frozen, and returns the loss of the whole model and its
// gradients.
func gradients(t *units.Set, f *hlo.Func, ps []nn.Param, p []nn.V) (loss nn.V, g []nn.V) {
	has := map[string]nn.V{}
	for i, x := range ps {
		has[x.Name] = p[i]
	}
	pass := t.Pass(f, has)
	var weight, key nn.V
	if t.O.Masked {
		weight = f.Arg(hlo.F32)
	}
	scale, back := t.Scaled(f)
	if t.Draws {
		key = f.Arg(hlo.U64, 1)
	}
	for _, s := range t.Stores { // what is frozen: what is trained is no store yet
		for u := range t.Params {
			s.Declare(f, u, has)
		}
	}
	var x nn.V
	for u := range t.Params {
		if pass.Again = t.O.Recompute && u > 0 && u < t.Last(); key != nil {
			pass.Key = hlo.Cat(0, key, f.Const(hlo.U64, float64(u)).Reshape(1))
		}
		if u < t.Last() {
			x = t.Model.Write(pass, u, x)
		}
	}
	if loss = t.Model.WriteTail(pass, x); weight != nil {
		loss = loss.Mul(weight)
	}
	g = hlo.Grad(units.Times(loss, scale), p...)
	for i, x := range g {
		g[i] = units.Times(x, back)
	}
	return loss, g
}

// writeStep is a step of one rank: the state after it, and the loss.
func writeStep(t *units.Set, f *hlo.Func, ps []nn.Param, sorts int) []nn.V {
	s := args(f, ps, sorts)
	loss, g := gradients(t, f, ps, s[:len(ps)])
	return updates(t, ps, s, g, loss, update.NewHyper(f, t.O.Adam))
}

// updates is all state after a step with gradients g, and the loss. If they are not finite the state is as it was, and
// the loss no number, or, where it is scaled, what stands before it: that is 0 if they are.
func updates(t *units.Set, ps []nn.Param, s, g []nn.V, loss nn.V, h update.Hyper) []nn.V {
	g, odd := update.Clipped(g, t.O.Clip)
	h = h.Where(odd.Cmp("EQ", odd.Func().Const(hlo.F32, 0)))
	n := len(ps)
	out := make([]nn.V, len(s))
	for i, p := range ps {
		out[i], out[n+i], out[2*n+i] = h.AdamW(s[i], s[n+i], s[2*n+i], g[i], t.O.Group(p))
		if len(s) > 3*n {
			out[3*n+i] = h.EMA(t.O.EMA, s[3*n+i], out[i])
		}
	}
	if t.O.Scale == nil {
		return append(out, loss.Add(odd))
	}
	return append(out, odd, loss)
}

// scaled are gradients of one of n micro batches, as parts of the mean's.
func scaled(g []nn.V, n int) []nn.V {
	if n > 1 {
		for i, x := range g {
			g[i] = x.MulC(1 / float64(n))
		}
	}
	return g
}

func (r *replica) Step(ctx context.Context, n int, rate float64, in []Input) (losses []*xla.Buffer, err error) {
	h, err := r.t.Scalars(n, rate)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Free()) }()
	k := len(r.ps)
	var more []*xla.Buffer // what is frozen
	for _, s := range r.t.Stores[1:] {
		for u := range r.t.Params {
			open, failed := s.Open(ctx, u)
			if failed != nil {
				return nil, failed
			}
			defer func() { err = errors.Join(err, s.Done(u, open)) }()
			more = append(more, open...)
		}
	}
	var grads []*xla.Buffer
	for i, b := range in {
		batch := slices.Concat(b.Args, b.Weight, b.Scale)
		if r.t.Draws {
			key, failed := xla.Put(r.t.M.Client(), []uint64{b.Key}, 1)
			if failed != nil {
				return losses, failed
			}
			defer func() { err = errors.Join(err, key.Free()) }()
			batch = append(batch, key)
		}
		batch = append(batch, more...)
		if r.whole != nil {
			out, err := r.whole.Run(len(r.state), append(append(slices.Clone(r.state), batch...), h)...)
			if err != nil {
				return nil, err
			}
			losses, err = r.applied(out)
			return losses, errors.Join(r.settled(more, out), err)
		}
		program, sum := r.grads, []*xla.Buffer(nil)
		if i > 0 {
			program, sum = r.more, grads
		}
		out, err := program.Run(len(sum), append(append(slices.Clone(sum), r.state[:k]...), batch...)...)
		if err != nil {
			return losses, err
		}
		grads, losses = out[:k], append(losses, out[k])
		if err := r.settled(more, out); err != nil {
			return losses, err
		}
	}
	if err := r.average(ctx, grads); err != nil {
		return losses, err
	}
	last := len(losses) - 1
	out, err := r.apply.Run(len(r.state), append(append(slices.Clone(r.state), grads...), losses[last], h)...)
	if err != nil {
		return losses, err
	}
	err = xla.FreeAll(append(grads, losses[last])...)
	loss, odd := r.applied(out)
	return append(losses[:last], loss...), errors.Join(err, odd)
}

// applied takes what updates has returned: the state, and the loss, which it returns. Where the loss is scaled it waits
// for what stands between them, and says what that means.
func (r *replica) applied(out []*xla.Buffer) (loss []*xla.Buffer, err error) {
	k, last := len(r.state), len(out)-1
	r.state = out[:k]
	if odd := out[k:last]; len(odd) > 0 {
		x := []float32{0}
		if err = errors.Join(xla.Get(odd[0], x), odd[0].Free()); err == nil && x[0] != 0 {
			err = zero.ErrNotFinite
		}
	}
	return out[last:], err
}

// settled waits for results if something frozen went into them: its memory is then given back.
func (r *replica) settled(more, out []*xla.Buffer) error {
	if len(more) == 0 {
		return nil
	}
	return out[0].Wait()
}

// average makes gradients the means over the ranks. The stream waits for the program, or this call
// does; then this call waits for the stream, so that the next program does not begin before.
func (r *replica) average(ctx context.Context, grads []*xla.Buffer) error {
	world := r.t.M.World()
	if world.Size() == 1 {
		return nil
	}
	s := r.t.M.Order()
	bufs := make([]ccl.Buf, len(grads))
	for i, g := range grads {
		var err error
		if r.t.O.Wait {
			bufs[i], err = xla.Buf[float32](g)
		} else {
			bufs[i], err = xla.BufOn[float32](g, s)
		}
		if err != nil {
			return err
		}
	}
	return world.On(s).Group(func(q ccl.Queue) error {
		for _, b := range bufs {
			q.AllReduce(b, ccl.InPlace(), ccl.Avg)
		}
		return nil
	}).Wait(ctx)
}

func (r *replica) Declare(f *hlo.Func, u int, has map[string]nn.V) []nn.V {
	ps := r.ps[r.first[u]:r.first[u+1]]
	list := args(f, ps, 1)
	for i, p := range ps {
		has[p.Name] = list[i]
	}
	return list
}

func (r *replica) Open(_ context.Context, u int) ([]*xla.Buffer, error) {
	return r.state[r.first[u]:r.first[u+1]], nil
}

func (r *replica) Done(int, []*xla.Buffer) error { return nil }

// tensors of a replica are whole on each rank; one of them writes each.
func (r *replica) Tensors(_ context.Context, filled bool) (list []ckpt.Tensor, err error) {
	n := len(r.ps)
	for i, b := range r.state {
		p := r.ps[i%n]
		x := make([]float32, p.Len())
		if filled {
			if err := xla.Get(b, x); err != nil {
				return nil, err
			}
		}
		list = append(list, ckpt.Tensor{Name: Prefixes[i/n] + p.Name, Shape: p.Dims, Data: x})
	}
	return list, nil
}

func (r *replica) Restore(_ context.Context, list []ckpt.Tensor) error {
	for i, t := range list {
		if err := r.set(i, t.Data.([]float32), t.Shape); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) set(i int, x []float32, dims []int) error {
	b, err := xla.Put(r.t.M.Client(), x, dims...)
	if err != nil {
		return err
	}
	old := r.state[i]
	r.state[i] = b
	return old.Free()
}

func (r *replica) Load(ctx context.Context, fill units.Fill) error {
	list, err := r.Tensors(ctx, true)
	if err != nil {
		return err
	}
	n := len(r.ps)
	if _, err := fill(list[:n]); err != nil {
		return err
	}
	for i := range list[3*n:] { // the average begins anew
		list[3*n+i].Data = list[i].Data
	}
	return r.Restore(ctx, list)
}

func (r *replica) Swap(context.Context) error {
	n := len(r.ps)
	for i := range n {
		r.state[i], r.state[3*n+i] = r.state[3*n+i], r.state[i]
	}
	return nil
}

func (r *replica) Bytes() zero.Bytes { return zero.Bytes{} }

func (r *replica) Close() error { return xla.FreeAll(r.state...) }
