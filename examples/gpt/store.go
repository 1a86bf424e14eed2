package main

import (
	"context"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// store is where the parameters are: a zero.Model, replicas that package ddp keeps equal, or a zero.Model in bfloat16.
type store interface {
	Params(ctx context.Context, i int) ([][]float32, error)
	Release(i int)
	Grads(ctx context.Context, i int) ([][]float32, error)
	Reduce(i int) error
	Step(ctx context.Context, u zero.Update[float32]) error
	Load(ctx context.Context, i int, full [][]float32, root int) error
	Loaded(ctx context.Context) error
	Shard(i int) []float32
	Pieces(i int) []zero.Piece
	Bytes() zero.Bytes
	Stats() zero.Stats
	Norm() float64
	Close() error
}

// newStore makes that of the flags, for units of these lengths.
func newStore(ctx context.Context, c *ccl.Comm, cfg *config, lens [][]int, o *zero.Options) (store, error) {
	switch {
	case cfg.held.bf16:
		m, err := zero.New[ccl.BFloat16, float32](ctx, c, lens, o)
		if err != nil {
			return nil, err
		}
		return newNarrow(m, lens), nil
	case o.Stage == 0:
		return newReplicas(ctx, c, lens, o)
	}
	m, err := zero.New[float32, float32](ctx, c, lens, o)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// views cuts mem into a unit's parameters.
func views(mem []float32, lens []int) (v [][]float32) {
	for _, n := range lens {
		v, mem = append(v, mem[:n:n]), mem[n:]
	}
	return v
}

func sum(lens []int) (n int) {
	for _, l := range lens {
		n += l
	}
	return n
}

// replicas are whole parameters on each rank, whose gradients a ddp.Reducer averages.
type replicas struct {
	c             *ccl.Comm
	o             *zero.Options
	params, grads [][][]float32 // by unit and parameter
	whole         [][]float32   // parameters by unit
	pieces        [][]zero.Piece
	all, mem      []float32 // gradients; the memory
	first         []int     // gradient of each unit among those of the Reducer
	tensors       int       // gradients of all units
	passes        []int     // micro batches that each unit has had
	red           *ddp.Reducer
	stats         zero.Stats
	norm          float64 // of the last step
}

func newReplicas(ctx context.Context, c *ccl.Comm, lens [][]int, o *zero.Options) (*replicas, error) {
	r := &replicas{c: c, o: o, passes: make([]int, len(lens))}
	n := 0
	for _, l := range lens {
		n += sum(l)
	}
	mem, err := ccl.MakeSlice[float32](ctx, c, n)
	if err != nil {
		return nil, err
	}
	r.all, r.mem = mem, mem
	var bufs []ccl.Buf
	for i, l := range lens {
		at, pieces := 0, []zero.Piece(nil)
		for j, n := range l {
			pieces = append(pieces, zero.Piece{Unit: i, Param: j, Hi: n, At: at})
			at += n
		}
		r.pieces = append(r.pieces, pieces)
		w := make([]float32, at)
		r.whole, r.params = append(r.whole, w), append(r.params, views(w, l))
		r.grads, r.first = append(r.grads, views(mem, l)), append(r.first, len(bufs))
		mem = mem[len(w):]
		for _, g := range r.grads[len(r.grads)-1] {
			bufs = append(bufs, ccl.BufOf(g))
		}
	}
	r.tensors = len(bufs)
	r.red, err = ddp.New(ctx, c, bufs, nil)
	return r, err
}

func (r *replicas) Params(_ context.Context, i int) ([][]float32, error) { return r.params[i], nil }
func (r *replicas) Release(int)                                          {}
func (r *replicas) Grads(_ context.Context, i int) ([][]float32, error)  { return r.grads[i], nil }
func (r *replicas) Loaded(context.Context) error                         { return nil }
func (r *replicas) Shard(i int) []float32                                { return r.whole[i] }
func (r *replicas) Pieces(i int) []zero.Piece                            { return r.pieces[i] }
func (r *replicas) Stats() zero.Stats                                    { return r.stats }
func (r *replicas) Norm() float64                                        { return r.norm }

// Reduce says that the last micro batch's gradients of a unit are final.
func (r *replicas) Reduce(i int) error {
	if r.passes[i]++; r.passes[i] < r.o.Micro {
		return nil
	}
	for j := len(r.grads[i]) - 1; j >= 0; j-- {
		if err := r.red.Ready(r.first[i] + j); err != nil {
			return err
		}
	}
	return nil
}

func (r *replicas) Step(ctx context.Context, u zero.Update[float32]) error {
	if err := r.red.Wait(ctx); err != nil {
		return err
	}
	s := r.red.Stats()
	r.stats = zero.Stats{Reduced: s.Bytes, Comm: s.Comm, Exposed: s.Exposed}
	scale := 1 / float64(max(r.o.Micro, 1))
	squares := []float64{0}
	for i := range r.grads {
		for j, g := range r.grads[i] {
			sum := 0.
			for _, x := range g {
				sum += float64(x) * float64(x)
			}
			if r.o.NormOf(i, j) || math.IsNaN(sum) || math.IsInf(sum, 0) {
				squares[0] += sum
			}
		}
	}
	if err := ccl.AllReduce(ctx, r.o.NormOver, squares, squares, ccl.Sum); err != nil {
		return err
	}
	norm := math.Sqrt(squares[0]) * scale
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return fmt.Errorf("%w: %v", zero.ErrNotFinite, norm)
	}
	r.norm = norm
	if r.o.Clip > 0 {
		scale *= optim.ClipFactor(norm, r.o.Clip)
	}
	if scale != 1 {
		mat.Scale(r.all, float32(scale))
	}
	for i, pieces := range r.pieces {
		for j, p := range pieces {
			if err := u(p, r.params[i][j], r.grads[i][j]); err != nil {
				return err
			}
		}
	}
	clear(r.all)
	clear(r.passes)
	return nil
}

func (r *replicas) Load(ctx context.Context, i int, full [][]float32, root int) error {
	for j, p := range full {
		copy(r.params[i][j], p)
	}
	return ddp.Broadcast(ctx, r.c, []ccl.Buf{ccl.BufOf(r.whole[i])}, root)
}

func (r *replicas) Bytes() zero.Bytes {
	n := int64(4 * len(r.all))
	return zero.Bytes{Params: n, Grads: n}
}

func (r *replicas) Close() error {
	var err error
	if r.red != nil {
		err = r.red.Close()
	}
	ccl.FreeSlice(r.mem)
	return err
}

// narrow is a zero.Model whose parameters and gradients are bfloat16: the layers compute in float32, a unit at a time.
type narrow struct {
	*zero.Model[ccl.BFloat16, float32]
	lens [][]int
	wide [2][]float32 // parameters of unit 0, which a tied head uses beside its own, and of another unit
	grad []float32    // of one unit
	ctx  context.Context
}

func newNarrow(m *zero.Model[ccl.BFloat16, float32], lens [][]int) *narrow {
	n := &narrow{Model: m, lens: lens}
	most := [2]int{}
	for i, l := range lens {
		most[min(i, 1)] = max(most[min(i, 1)], sum(l))
	}
	for i, k := range most {
		n.wide[i] = make([]float32, k)
	}
	n.grad = make([]float32, max(most[0], most[1]))
	return n
}

func (n *narrow) Params(ctx context.Context, i int) ([][]float32, error) {
	p, err := n.Model.Params(ctx, i)
	if err != nil {
		return nil, err
	}
	v := views(n.wide[min(i, 1)], n.lens[i])
	for j := range p {
		for k, x := range p[j] {
			v[j][k] = x.Float32()
		}
	}
	return v, nil
}

func (n *narrow) Grads(ctx context.Context, i int) ([][]float32, error) {
	n.ctx = ctx
	clear(n.grad)
	return views(n.grad, n.lens[i]), nil
}

func (n *narrow) Reduce(i int) error {
	g, err := n.Model.Grads(n.ctx, i)
	if err != nil {
		return err
	}
	for j, v := range views(n.grad, n.lens[i]) {
		for k, x := range v {
			g[j][k] = ccl.ToBFloat16(g[j][k].Float32() + x)
		}
	}
	return n.Model.Reduce(i)
}
