package main

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/zero"
)

// store is where the parameters are: a zero.Model, or one in bfloat16.
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
	if cfg.held.bf16 {
		m, err := zero.New[ccl.BFloat16, float32](ctx, c, lens, o)
		if err != nil {
			return nil, err
		}
		return newNarrow(m, lens), nil
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
