package units

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

func (t *Set) newBase(ctx context.Context) (Store, error) {
	switch t.O.Base { // which fit has checked
	case quant.BF16:
		return newFrozen[ccl.BFloat16](ctx, t)
	case quant.Int8, quant.NF4:
		return newQuantized(t)
	}
	return newFrozen[float32](ctx, t)
}

// frozen are shards that no step updates.
type frozen[P zero.Float] struct{ *Shards[P, P] }

func newFrozen[P zero.Float](ctx context.Context, t *Set) (frozen[P], error) {
	s, err := NewShards[P, P](ctx, t, true, &zero.Options{Micro: t.O.Micro})
	return frozen[P]{s}, err
}

// Next ends a step, so that zero knows the order of the units in the next one.
func (s frozen[P]) Next(ctx context.Context) error {
	return s.Z.StepBufs(ctx, func(zero.Piece, ccl.Buf, ccl.Buf) error { return nil })
}

// Quantized are parameters of which matrices are quantized, in XLA's memory. Those of a unit are three arrays: codes,
// their scales, and what is not quantized. At stage 3 a rank holds its part of each, and gathers a unit to use it.
type Quantized struct {
	t     *Set
	ranks int                     // that an array is divided among
	bufs  [][]*xla.Buffer         // by unit
	made  []*xla.Buffer           // what units are gathered into
	idle  map[array][]*xla.Buffer // those of them that no program reads
	fresh []bool                  // by unit: its parameters are the initial ones
}

// array is the type and the length of one.
type array struct {
	t hlo.Type
	n int
}

func newQuantized(t *Set) (*Quantized, error) {
	n := len(t.Params)
	q := &Quantized{t: t, ranks: 1, bufs: make([][]*xla.Buffer, n), idle: map[array][]*xla.Buffer{},
		fresh: slices.Repeat([]bool{true}, n)}
	if t.O.Stage == 3 {
		q.ranks = t.M.World().Size()
	}
	for u := range t.Params {
		if err := q.set(u, t.Initial(u, true)); err != nil {
			return q, err
		}
	}
	return q, nil
}

// Sharded reports whether a rank must gather a unit to use it.
func (q *Quantized) Sharded() bool { return q.ranks > 1 }

// small reports whether a parameter of unit u is quantized.
func (q *Quantized) small(u int, p nn.Param) bool { return len(p.Dims) == 2 && u > 0 && u < q.t.Last() }

// act is the type of what is not, and of what Quantized parameters are decoded to.
func (q *Quantized) act() hlo.Type {
	if q.t.Model.Act == hlo.BF16 {
		return hlo.BF16
	}
	return hlo.F32
}

// lengths are how many codes and scales a parameter of unit u has, and elements that are not quantized.
func (q *Quantized) lengths(u int, p nn.Param) [3]int {
	switch n := p.Len(); {
	case !q.small(u, p):
		return [3]int{0, 0, n}
	case q.t.O.Base == quant.NF4:
		return [3]int{(n + 1) / 2, (n + quant.Block - 1) / quant.Block, 0}
	default:
		return [3]int{n, p.Dims[0], 0}
	}
}

// arrays are those of unit u, with what is at their ends so that all ranks have as much.
func (q *Quantized) arrays(u int) [3]array {
	list := [3]array{{hlo.I8, 0}, {hlo.F32, 0}, {q.act(), 0}}
	if q.t.O.Base == quant.NF4 {
		list[0].t = hlo.U8
	}
	for _, p := range q.t.Of(u, true) {
		for k, n := range q.lengths(u, p) {
			list[k].n += n
		}
	}
	for k := range list {
		list[k].n = (list[k].n + q.ranks - 1) / q.ranks * q.ranks
	}
	return list
}

// set replaces the parameters of unit u.
func (q *Quantized) set(u int, full [][]float32) error {
	if err := xla.FreeAll(q.bufs[u]...); err != nil {
		return err
	}
	q.bufs[u] = nil
	var nf4 []uint8
	var ints []int8
	var scales, rest []float32
	for i, p := range q.t.Of(u, true) {
		switch x := full[i]; {
		case !q.small(u, p):
			rest = append(rest, x...)
		case q.t.O.Base == quant.NF4:
			c, s := quant.ToNF4(x)
			nf4, scales = append(nf4, c...), append(scales, s...)
		default:
			c, s, err := quant.ToInt8(x, p.Dims[0])
			if err != nil {
				return err
			}
			ints, scales = append(ints, c...), append(scales, s...)
		}
	}
	for k, a := range q.arrays(u) {
		var b *xla.Buffer
		var err error
		switch {
		case a.n == 0:
			continue
		case a.t == hlo.U8:
			b, err = part(q, nf4, a.n)
		case a.t == hlo.I8:
			b, err = part(q, ints, a.n)
		case a.t == hlo.BF16:
			b, err = part(q, narrowed[ccl.BFloat16](rest), a.n)
		case k == 1:
			b, err = part(q, scales, a.n)
		default:
			b, err = part(q, rest, a.n)
		}
		if err != nil {
			return err
		}
		q.bufs[u] = append(q.bufs[u], b)
	}
	return nil
}

// part puts this rank's part of x, which n elements are made of.
func part[T ccl.Number](q *Quantized, x []T, n int) (*xla.Buffer, error) {
	each, rank := n/q.ranks, 0
	if q.ranks > 1 {
		rank = q.t.M.World().Rank()
	}
	x = append(x, make([]T, n-len(x))...)
	return xla.Put(q.t.M.Client(), x[rank*each:(rank+1)*each], each)
}

func (q *Quantized) Declare(f *hlo.Func, u int, has map[string]nn.V) []nn.V {
	var flat [3]nn.V
	for k, a := range q.arrays(u) {
		if a.n > 0 {
			flat[k] = f.Arg(a.t, a.n)
		}
	}
	var at [3]int
	for _, p := range q.t.Of(u, true) {
		var x [3]nn.V
		for k, n := range q.lengths(u, p) {
			if n > 0 {
				x[k] = flat[k].Cut(0, at[k], at[k]+n)
				at[k] += n
			}
		}
		switch {
		case !q.small(u, p):
			has[p.Name] = x[2].Reshape(p.Dims...)
		case q.t.O.Base == quant.NF4:
			has[p.Name] = quant.FromNF4(x[0], x[1], p.Len(), q.act()).Reshape(p.Dims...)
		default:
			has[p.Name] = quant.FromInt8(x[0], x[1], q.act()).Reshape(p.Dims...)
		}
	}
	return nil
}

func (q *Quantized) Open(ctx context.Context, u int) (open []*xla.Buffer, err error) {
	if !q.Sharded() {
		return q.bufs[u], nil
	}
	var dst, src []ccl.Buf
	for _, b := range q.bufs[u] {
		to, err := q.room(array{b.Type(), b.Len() * q.ranks})
		if err != nil {
			return nil, err
		}
		open = append(open, to)
		whole, failed := memory(to)
		mine, err := memory(b)
		if err = errors.Join(failed, err); err != nil {
			return nil, err
		}
		dst, src = append(dst, whole), append(src, mine)
	}
	if len(open) == 0 {
		return nil, nil
	}
	return open, q.t.M.World().On(q.t.M.Order()).Group(func(g ccl.Queue) error {
		for i := range dst {
			g.AllGather(dst[i], src[i])
		}
		return nil
	}).Wait(ctx)
}

// room is a buffer to gather an array into.
func (q *Quantized) room(a array) (b *xla.Buffer, err error) {
	if list := q.idle[a]; len(list) > 0 {
		q.idle[a] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	switch c := q.t.M.Client(); a.t {
	case hlo.U8:
		b, err = xla.Put(c, make([]uint8, a.n), a.n)
	case hlo.I8:
		b, err = xla.Put(c, make([]int8, a.n), a.n)
	case hlo.BF16:
		b, err = xla.Put(c, make([]ccl.BFloat16, a.n), a.n)
	default:
		b, err = xla.Put(c, make([]float32, a.n), a.n)
	}
	if err == nil {
		q.made = append(q.made, b)
	}
	return b, err
}

// memory is a buffer as collectives take it.
func memory(b *xla.Buffer) (ccl.Buf, error) {
	switch b.Type() {
	case hlo.U8:
		return xla.Buf[uint8](b)
	case hlo.I8:
		return xla.Buf[int8](b)
	case hlo.BF16:
		return xla.Buf[ccl.BFloat16](b)
	}
	return xla.Buf[float32](b)
}

func (q *Quantized) Done(_ int, open []*xla.Buffer) error {
	if q.Sharded() {
		for _, b := range open {
			a := array{b.Type(), b.Len()}
			q.idle[a] = append(q.idle[a], b)
		}
	}
	return nil
}

// Load has the parameters of one unit at a time. A unit of which a checkpoint has nothing stays as it is. Of one that
// was loaded before it must have all: what was rounded to few bits then is not rounded once more.
func (q *Quantized) Load(_ context.Context, fill Fill) error {
	for u := range q.bufs {
		full := q.t.Initial(u, true)
		var list []ckpt.Tensor
		for i, p := range q.t.Of(u, true) {
			list = append(list, ckpt.Tensor{Name: p.Name, Shape: p.Dims, Data: full[i]})
		}
		if len(list) == 0 {
			continue
		}
		missing, err := fill(list)
		switch {
		case err != nil:
			return err
		case len(missing) == len(list):
			continue
		case len(missing) > 0 && !q.fresh[u]:
			return fmt.Errorf("fit: the checkpoint has no %s, and has others of unit %q, which was loaded before: "+
				"a base in few bits is loaded by whole units", missing[0], q.t.Model.Units[u].Name)
		}
		if err := q.set(u, full); err != nil {
			return err
		}
		q.fresh[u] = false
	}
	return nil
}

func (q *Quantized) Close() error { return xla.FreeAll(append(slices.Concat(q.bufs...), q.made...)...) }
