package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/train/fit/update"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// sharded is package zero around programs for the kinds of units: XLA reads the parameters of a unit
// in place, and the gradients that it computes are copied into zero's memory once. P is the type of
// parameters and gradients; masters are float32.
type sharded[P zero.Float] struct {
	s     *units.Shards[P, float32]
	t     *units.Set
	state [][]ccl.Buf // moments, perhaps an average, by sort and unit, laid out as the shards
	mem   zero.Memory // theirs
	adam  map[piece]*xla.Program
}

// piece is what a program of AdamW's depends on.
type piece struct {
	n   int
	of  update.Group
	ema bool
}

func newSharded[P zero.Float](ctx context.Context, t *units.Set) (*sharded[P], error) {
	s, err := units.NewShards[P, float32](ctx, t, false, &zero.Options{Clip: t.O.Clip, Micro: t.O.Micro,
		Offload: t.O.Offload})
	z := &sharded[P]{s: s, t: t, mem: t.Mem.Zeros(), adam: map[piece]*xla.Program{}, state: make([][]ccl.Buf, 2)}
	if t.O.Offload {
		z.mem = t.Mem
	}
	if t.O.EMA > 0 {
		z.state = append(z.state, nil)
	}
	for i := range s.Ps {
		for k := range z.state {
			var b ccl.Buf
			if err == nil {
				b, err = z.mem.Alloc(ccl.TypeFloat32, s.Z.ShardBuf(i).Len())
			}
			z.state[k] = append(z.state[k], b)
		}
	}
	if err == nil {
		err = z.begin()
	}
	if err != nil {
		err = errors.Join(err, z.Close())
	}
	return z, err
}

// begin sets the average to what it is of.
func (z *sharded[P]) begin() error {
	for i := range z.s.Ps {
		if len(z.state) < 3 || z.state[2][i].Len() == 0 {
			continue
		}
		if err := z.mem.Convert(z.state[2][i], z.s.Z.ShardBuf(i)); err != nil {
			return err
		}
	}
	return nil
}

// Declare is that of the shards, as are Open, Done and Close.
func (z *sharded[P]) Declare(f *hlo.Func, u int, has map[string]nn.V) []nn.V {
	return z.s.Declare(f, u, has)
}

func (z *sharded[P]) Open(ctx context.Context, u int) ([]*xla.Buffer, error) { return z.s.Open(ctx, u) }

func (z *sharded[P]) Done(u int, open []*xla.Buffer) error { return z.s.Done(u, open) }

func (z *sharded[P]) Close() error { return z.s.Close() }

// forward is the program of unit u: its result, for the last unit the loss.
func forward(t *units.Set, ctx context.Context, u int) (*xla.Program, error) {
	return t.Program(ctx, t.Model.Kind(u), func(f *hlo.Func) []nn.V {
		has := map[string]nn.V{}
		t.Declare(f, u, has)
		x, p := t.X(f, u), t.Pass(f, has)
		if t.Draws {
			p.Key = f.Arg(hlo.U64, 2)
		}
		return []nn.V{t.Model.Write(p, u, x)}
	})
}

// users are the units above u that read parameters of it that are trained.
func users(t *units.Set, u int) (list []int) {
	if len(t.Of(u, false)) == 0 {
		return nil
	}
	for v, x := range t.Model.Units {
		if slices.Contains(x.Uses, u) {
			list = append(list, v)
		}
	}
	return list
}

// backward is the program of u, which computes its result anew. It has the gradient of x, unless
// nothing below is trained; those of the parameters that it reads, joined by unit; and for the last unit the loss.
// Its last arguments are the gradients of its parameters from the units that use them.
func backward(t *units.Set, ctx context.Context, u int) (*xla.Program, error) {
	name := t.Model.Kind(u) + "_back"
	if u == t.Lowest {
		name += "_lowest"
	}
	return t.Program(ctx, name, func(f *hlo.Func) []nn.V {
		has := map[string]nn.V{}
		grads := t.Declare(f, u, has)
		x, p := t.X(f, u), t.Pass(f, has)
		if t.Draws {
			p.Key = f.Arg(hlo.U64, 2)
		}
		var loss nn.V
		if u < t.Last() {
			loss = t.Model.Write(p, u, x)
		} else {
			loss = t.Weighted(f, t.Model.WriteTail(p, x))
		}
		scale, back := t.Scaled(f)
		scalar := units.Times(loss, scale)
		if u < t.Last() { // whose dy is scaled
			dy := f.Arg(loss.Type(), loss.Dims()...)
			scalar = loss.As(hlo.F32).Mul(dy.As(hlo.F32)).SumAll()
		}
		of := slices.Concat(grads...)
		if u > t.Lowest {
			of = append(of, x)
		}
		g := hlo.Grad(scalar, of...)
		var out []nn.V
		if u > t.Lowest {
			out = append(out, g[len(g)-1])
		}
		for i, list := range grads {
			if len(list) == 0 {
				continue
			}
			flat := units.Times(joined(g[:len(list)]), back)
			if g = g[len(list):]; i == 0 {
				for range users(t, u) {
					flat = flat.Add(f.Arg(flat.Type(), flat.Len()))
				}
			}
			out = append(out, flat)
		}
		if u == t.Last() {
			out = append(out, loss)
		}
		return out
	})
}

// joined are gradients as one array, as zero has a unit.
func joined(g []nn.V) nn.V {
	flat := make([]nn.V, len(g))
	for i, x := range g {
		flat[i] = x.Reshape(x.Len())
	}
	return hlo.Cat(0, flat...)
}

func (z *sharded[P]) Step(ctx context.Context, n int, rate float64, in []Input) ([]*xla.Buffer, error) {
	var losses []*xla.Buffer
	for _, b := range in {
		loss, err := z.batch(ctx, b)
		if err != nil {
			return losses, err
		}
		losses = append(losses, loss)
	}
	for _, s := range z.t.Stores[1:] {
		if s, ok := s.(interface{ Next(context.Context) error }); ok {
			if err := s.Next(ctx); err != nil {
				return losses, err
			}
		}
	}
	if z.t.O.Offload {
		return losses, z.s.Z.Step(ctx, func(p zero.Piece, w, g []float32) error {
			var s [3][]float32
			for k := range z.state {
				s[k], _ = ccl.SliceOf[float32](z.part(k, p))
			}
			err := optim.Apply(z.adamOf(p, rate), n, w, g, s[0], s[1])
			if err == nil && s[2] != nil {
				err = optim.EMA(z.t.O.EMA, n, s[2], w)
			}
			return err
		})
	}
	h, err := z.t.Scalars(n, rate)
	if err != nil {
		return losses, err
	}
	err = z.s.Z.StepBufs(ctx, func(p zero.Piece, w, g ccl.Buf) error {
		if dev := z.t.Mem.GPU(); dev != nil {
			err := dev.AdamW(z.adamOf(p, rate), n, w, g, z.part(0, p), z.part(1, p))
			if err == nil && z.t.O.EMA > 0 {
				err = z.update(ctx, piece{n: w.Len(), ema: true}, []ccl.Buf{z.part(2, p), w}, 1, h)
			}
			return err
		}
		key, bufs, to := piece{w.Len(), z.group(p), z.t.O.EMA > 0}, []ccl.Buf{z.part(0, p), z.part(1, p), w, g}, 3
		if key.ema {
			bufs, to = []ccl.Buf{z.part(0, p), z.part(1, p), w, z.part(2, p), g}, 4
		}
		return z.update(ctx, key, bufs, to, h)
	})
	return losses, errors.Join(err, h.Free())
}

// part is a piece's state of a sort.
func (z *sharded[P]) part(k int, p zero.Piece) ccl.Buf {
	return z.state[k][p.Unit].From(p.At, p.At+p.Hi-p.Lo)
}

func (z *sharded[P]) group(p zero.Piece) update.Group { return z.t.O.Group(z.s.Ps[p.Unit][p.Param]) }

// adamOf is AdamW for a piece, as package optim has it.
func (z *sharded[P]) adamOf(p zero.Piece, rate float64) optim.AdamW {
	h, of := z.t.O.Adam, z.group(p)
	h.LR, h.Decay = rate*of.Rate, of.Decay
	return h
}

// update runs AdamW on a piece, or its average alone, by a program; its first results go to the first bufs.
func (z *sharded[P]) update(ctx context.Context, key piece, bufs []ccl.Buf, to int, h *xla.Buffer) error {
	if key.n == 0 {
		return nil
	}
	program := z.adam[key]
	if program == nil {
		var err error
		program, err = z.t.M.Own(fmt.Sprintf("update_%d_%d", key.n, len(bufs)), func(f *hlo.Func) []nn.V {
			var in []nn.V
			for range bufs {
				in = append(in, f.Arg(hlo.F32, key.n))
			}
			hyper := update.NewHyper(f, z.t.O.Adam)
			if to == 1 {
				return []nn.V{hyper.EMA(z.t.O.EMA, in[0], in[1])}
			}
			w, m, v := hyper.AdamW(in[2], in[0], in[1], in[len(in)-1], key.of)
			if key.ema {
				return []nn.V{m, v, w, hyper.EMA(z.t.O.EMA, in[3], w)}
			}
			return []nn.V{m, v, w}
		})
		if err != nil {
			return err
		}
		z.adam[key] = program
	}
	out, err := z.t.Mem.Apply(ctx, program, bufs, h)
	if err != nil {
		return err
	}
	for i, b := range bufs[:to] {
		err = errors.Join(err, z.t.Mem.Take(ctx, b, out[i], false))
	}
	return errors.Join(err, xla.FreeAll(out...))
}

// batch goes forward and backward with one micro batch, and returns its loss.
func (z *sharded[P]) batch(ctx context.Context, in Input) (*xla.Buffer, error) {
	t, w := z.t, &units.Walk{T: z.t, Ctx: ctx}
	xs := make([][]*xla.Buffer, t.Last()+1) // of each unit: what goes into it, none for the first
	for u := range t.Last() {
		p, err := forward(t, ctx, u)
		xs[u+1] = w.Run(p, err, u, slices.Concat(xs[u], in.Args, w.Keys(u, in.Key))...)
	}
	var loss *xla.Buffer
	var dy []*xla.Buffer
	held := make([][]*xla.Buffer, len(xs)) // of each unit: gradients from those that use it
	for u := t.Last(); u >= t.Lowest && w.Err == nil; u-- {
		p, err := backward(t, ctx, u)
		args := slices.Concat(xs[u], in.Args, w.Keys(u, in.Key))
		if u == t.Last() {
			args = append(args, in.Weight...)
		}
		args = append(args, in.Scale...)
		out := w.Run(p, err, u, slices.Concat(args, dy, held[u])...)
		if w.Err != nil {
			break
		}
		if u == t.Last() {
			loss = out[len(out)-1]
		}
		if dy = nil; u > t.Lowest {
			dy, out = out[:1], out[1:]
		}
		for i, n := range t.Needs(u) {
			if z.s.At[n] < 0 {
				continue
			}
			if i == 0 {
				w.Err = z.reduce(ctx, z.s.At[n], out[0])
			} else {
				held[n] = append(held[n], out[0])
			}
			out = out[1:]
		}
	}
	err := w.End(loss)
	return loss, err
}

// reduce hands the gradients of a unit to zero.
func (z *sharded[P]) reduce(ctx context.Context, i int, g *xla.Buffer) error {
	bufs, err := z.s.Z.GradBufs(ctx, i)
	if err == nil {
		err = z.t.Mem.Take(ctx, units.Joint(bufs), g, z.t.O.Micro > 1)
	}
	if err == nil {
		err = z.s.Z.Reduce(i)
	}
	return err
}

// tensors of shards are pieces of parameters: the master's, and of its state. They are the model's own memory.
func (z *sharded[P]) Tensors(ctx context.Context, _ bool) ([]ckpt.Tensor, error) {
	if err := z.t.M.Settle(ctx); err != nil {
		return nil, err
	}
	var states []zero.State[float32]
	for k, bufs := range z.state {
		states = append(states, zero.State[float32]{Prefix: Prefixes[1+k], Bufs: bufs})
	}
	return z.s.Z.Tensors(z.s.Place, states...)
}

func (z *sharded[P]) Restore(ctx context.Context, _ []ckpt.Tensor) error { return z.s.Z.Loaded(ctx) }

func (z *sharded[P]) Load(ctx context.Context, fill units.Fill) error {
	if err := z.s.Load(ctx, fill); err != nil {
		return err
	}
	return z.begin()
}

func (z *sharded[P]) Swap(ctx context.Context) error {
	for i, average := range z.state[2] {
		if average.Len() == 0 {
			continue
		}
		master := z.s.Z.ShardBuf(i)
		tmp, err := z.mem.Alloc(ccl.TypeFloat32, average.Len())
		if err != nil {
			return err
		}
		err = errors.Join(z.mem.Convert(tmp, master), z.mem.Convert(master, average), z.mem.Convert(average, tmp),
			z.t.M.Settle(ctx), z.mem.Free(tmp))
		if err != nil {
			return err
		}
	}
	return z.s.Z.Loaded(ctx)
}

func (z *sharded[P]) Bytes() zero.Bytes { return z.s.Z.Bytes() }
