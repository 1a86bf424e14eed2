// Package steps makes the steps of training, in one of two layouts: a replica, and units that package zero shards.
package steps

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// Layout is a store of what is trained.
type Layout interface {
	units.Store
	// Step returns the losses of micro batches, which need not be computed yet.
	Step(ctx context.Context, n int, rate float64, in []Input) ([]*xla.Buffer, error)
	// Tensors are what this rank has of a checkpoint: with its state, or to be filled for Restore.
	Tensors(ctx context.Context, filled bool) ([]ckpt.Tensor, error)
	Restore(ctx context.Context, list []ckpt.Tensor) error
	// Swap exchanges parameters with their moving average.
	Swap(ctx context.Context) error
	Bytes() zero.Bytes
}

// New makes the layout that the options of t say, and makes it the first of its stores.
func New(ctx context.Context, t *units.Set) (l Layout, err error) {
	switch {
	case t.O.Stage == 0 && !t.O.Units:
		l, err = newReplica(ctx, t)
	case t.O.BF16 && t.Model.LoRA == nil:
		l, err = newSharded[ccl.BFloat16](ctx, t)
	default:
		l, err = newSharded[float32](ctx, t)
	}
	if err == nil {
		t.Stores = append([]units.Store{l}, t.Stores...)
	}
	return l, err
}

// Text is the program of a step of one rank with all of the model.
func Text(t *units.Set) (string, error) {
	var ps []nn.Param
	for _, list := range t.Params {
		ps = append(ps, list...)
	}
	var f hlo.Func
	return f.Text("step", writeStep(t, &f, ps, 3)...)
}

// Input is a micro batch as arguments.
type Input struct {
	Args   []*xla.Buffer // tokens, what is wanted
	Weight []*xla.Buffer // of the loss, if it is Masked
	Scale  []*xla.Buffer // of the loss, if it is scaled, and 1 over it
	Key    uint64
}

// Free frees the arguments.
func (in Input) Free() error { return xla.FreeAll(slices.Concat(in.Args, in.Weight, in.Scale)...) }
