package units

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Shards are parameters that package zero holds: those of a unit lie one behind the other, and are one argument.
type Shards[P, M zero.Float] struct {
	t    *Set
	Z    *zero.Model[P, M]
	At   []int        // of a unit of the model: its number in zero, -1 if it has none
	Ps   [][]nn.Param // by number in zero
	lens []int
}

// NewShards makes shards of what is frozen, or of what is not, with initial values.
func NewShards[P, M zero.Float](ctx context.Context, t *Set, frozen bool, o *zero.Options) (s *Shards[P, M],
	err error) {
	s = &Shards[P, M]{t: t}
	var units [][]int
	var of []int
	for u := range t.Params {
		list, lens, sum := t.Of(u, frozen), []int(nil), 0
		if len(list) == 0 {
			s.At = append(s.At, -1)
			continue
		}
		for _, p := range list {
			lens, sum = append(lens, p.Len()), sum+p.Len()
		}
		s.At, of = append(s.At, len(units)), append(of, u)
		units, s.Ps, s.lens = append(units, lens), append(s.Ps, list), append(s.lens, sum)
	}
	o.Stage, o.Memory = t.O.Stage, t.Mem.Zeros()
	if frozen {
		o.Frozen, o.Unchecked = func(int) bool { return true }, true
	}
	if s.Z, err = zero.New[P, M](ctx, t.M.World(), units, o); err != nil {
		return s, err
	}
	for i, u := range of {
		var full [][]M
		for _, x := range t.Initial(u, frozen) {
			full = append(full, narrowed[M](x))
		}
		if err := s.Z.Load(ctx, i, full, 0); err != nil {
			return s, err
		}
	}
	return s, s.Z.Loaded(ctx)
}

// narrowed is x as M.
func narrowed[M zero.Float](x []float32) []M {
	if s, ok := any(x).([]M); ok {
		return s
	}
	out := make([]M, len(x))
	if s, ok := any(out).([]ccl.BFloat16); ok {
		for i, v := range x {
			s[i] = ccl.ToBFloat16(v)
		}
	}
	return out
}

func (s *Shards[P, M]) Declare(f *hlo.Func, u int, has map[string]nn.V) (list []nn.V) {
	i := s.At[u]
	if i < 0 {
		return nil
	}
	flat, at := f.Arg(machine.TypeOf(ccl.TypeOf[P]()), s.lens[i]), 0
	for _, p := range s.Ps[i] {
		has[p.Name] = flat.Cut(0, at, at+p.Len()).Reshape(p.Dims...)
		list, at = append(list, has[p.Name]), at+p.Len()
	}
	if s.Z.Frozen(i) {
		return nil
	}
	return list
}

func (s *Shards[P, M]) Open(ctx context.Context, u int) ([]*xla.Buffer, error) {
	i := s.At[u]
	if i < 0 {
		return nil, nil
	}
	bufs, err := s.Z.ParamBufs(ctx, i)
	if err == nil && s.t.Mem.GPU() != nil && s.t.O.Stage == 0 { // else they were gathered, and waited for
		err = s.t.M.Settle(ctx)
	}
	var v *xla.Buffer
	if err == nil {
		v, err = s.t.Mem.View(Joint(bufs))
	}
	if err != nil {
		return nil, fmt.Errorf("unit %q: %w", s.t.Model.Units[u].Name, err)
	}
	return []*xla.Buffer{v}, nil
}

func (s *Shards[P, M]) Done(u int, open []*xla.Buffer) error {
	if len(open) == 0 {
		return nil
	}
	err := xla.FreeAll(open...)
	s.Z.Release(s.At[u])
	return err
}

// Joint is a unit's memory: its parameters lie one behind the other.
func Joint(bufs []ccl.Buf) ccl.Buf {
	all := bufs[0]
	for _, b := range bufs[1:] {
		all, _ = all.Join(b)
	}
	return all
}

func (s *Shards[P, M]) Place(i, k int) ckpt.Tensor {
	p := s.Ps[i][k]
	return ckpt.Tensor{Name: p.Name, Shape: p.Dims}
}

func (s *Shards[P, M]) Load(ctx context.Context, fill Fill) error {
	list, err := s.Z.Tensors(s.Place)
	if err == nil {
		_, err = fill(list)
	}
	if err != nil {
		return err
	}
	return s.Z.Loaded(ctx)
}

func (s *Shards[P, M]) Close() error {
	if s.Z == nil {
		return nil
	}
	return s.Z.Close()
}

// Walk is a walk over units: the first error ends it.
type Walk struct {
	T    *Set
	Ctx  context.Context
	Err  error
	Live []*xla.Buffer // freed at its end
}

// Needs are the units whose parameters unit u reads: itself, then those that it Uses.
func (t *Set) Needs(u int) []int { return append([]int{u}, t.Model.Units[u].Uses...) }

// Declare adds the arguments for the parameters that unit u reads; grads are, for each of needs(u),
// those that have gradients.
func (t *Set) Declare(f *hlo.Func, u int, has map[string]nn.V) (grads [][]nn.V) {
	for _, n := range t.Needs(u) {
		var list []nn.V
		for _, s := range t.Stores {
			list = append(list, s.Declare(f, n, has)...)
		}
		grads = append(grads, list)
	}
	return grads
}

// Run queues a program on the parameters that unit u reads and other arguments, and waits, so that
// the parameters may be released: their memory then serves others.
func (w *Walk) Run(p *xla.Program, err error, u int, in ...*xla.Buffer) (out []*xla.Buffer) {
	if w.Err == nil {
		w.Err = err
	}
	type opened struct {
		s    Store
		unit int
		bufs []*xla.Buffer
	}
	var open []opened
	var args []*xla.Buffer
	for _, n := range w.T.Needs(u) {
		for i, s := range w.T.Stores {
			if w.Err != nil {
				break
			}
			if w.T.Held != nil {
				args = append(args, w.T.Held[i][n]...)
				continue
			}
			var bufs []*xla.Buffer
			if bufs, w.Err = s.Open(w.Ctx, n); w.Err == nil {
				open, args = append(open, opened{s, n, bufs}), append(args, bufs...)
			}
		}
	}
	if w.Err == nil {
		out, w.Err = p.Run(0, append(args, in...)...)
		w.Live = append(w.Live, out...)
	}
	if w.Err == nil {
		w.Err = out[len(out)-1].Wait()
	}
	for _, x := range open {
		if err := x.s.Done(x.unit, x.bufs); w.Err == nil {
			w.Err = err
		}
	}
	return out
}

// Keys puts the key of unit u for a micro batch, if the model draws random numbers.
func (w *Walk) Keys(u int, key uint64) (list []*xla.Buffer) {
	if !w.T.Draws || w.Err != nil {
		return nil
	}
	var b *xla.Buffer
	if b, w.Err = xla.Put(w.T.M.Client(), []uint64{key, uint64(u)}, 2); w.Err == nil {
		list = append(list, b)
		w.Live = append(w.Live, b)
	}
	return list
}

// End frees what is live but for keep.
func (w *Walk) End(keep *xla.Buffer) error {
	err := w.Err
	for _, b := range w.Live {
		if b != keep || w.Err != nil {
			err = errors.Join(err, b.Free())
		}
	}
	return err
}
