package gomlx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"

	"github.com/goccl/goccl/ccl"
)

// flat has the gradients side by side, so that those of one type are reduced in one call: gomlx
// makes new memory for every result, and a Reducer's must stay.
type flat struct {
	vars []*mlctx.Variable // by name: gomlx's own order is another one after loading a checkpoint
	bufs []ccl.Buf
}

// byName sorts vars.
func byName(vars []*mlctx.Variable) []*mlctx.Variable {
	return slices.SortedFunc(slices.Values(vars), func(a, b *mlctx.Variable) int {
		return cmp.Compare(a.ScopeAndName(), b.ScopeAndName())
	})
}

// newFlat returns memory for the values of vars.
func newFlat(vars []*mlctx.Variable) (*flat, error) {
	f := &flat{vars: byName(vars)}
	var single, double int
	for _, v := range f.vars {
		switch v.Shape().DType {
		case dtypes.Float32:
			single += v.Shape().Size()
		case dtypes.Float64:
			double += v.Shape().Size()
		default:
			return nil, fmt.Errorf("gomlx: %s is of %s: only Float32 and Float64 are trained over ranks", v.ScopeAndName(),
				v.Shape())
		}
	}
	s, d := make([]float32, single), make([]float64, double)
	for _, v := range f.vars {
		n := v.Shape().Size()
		if v.Shape().DType == dtypes.Float32 {
			f.bufs, s = append(f.bufs, ccl.BufOf(s[:n])), s[n:]
		} else {
			f.bufs, d = append(f.bufs, ccl.BufOf(d[:n])), d[n:]
		}
	}
	return f, nil
}

// copy copies from the values of the variables, or into them.
func (f *flat) copy(from bool) error {
	for i, v := range f.vars {
		t, err := v.Value()
		if s, ok := ccl.SliceOf[float32](f.bufs[i]); ok && err == nil {
			err = move(t, s, from)
		} else if d, ok := ccl.SliceOf[float64](f.bufs[i]); ok && err == nil {
			err = move(t, d, from)
		}
		if err != nil {
			return fmt.Errorf("gomlx: %s: %w", v.ScopeAndName(), err)
		}
	}
	return nil
}

func move[T dtypes.Supported](t *tensors.Tensor, s []T, from bool) error {
	if from {
		return tensors.ConstFlatData(t, func(data []T) { copy(s, data) })
	}
	return tensors.MutableFlatData(t, func(data []T) { copy(data, s) })
}

// buf is the memory of a variable's value.
func buf(v *mlctx.Variable, data any) (ccl.Buf, error) {
	switch s := data.(type) {
	case []float32:
		return ccl.BufOf(s), nil
	case []float64:
		return ccl.BufOf(s), nil
	case []int32:
		return ccl.BufOf(s), nil
	case []int64:
		return ccl.BufOf(s), nil
	}
	return ccl.Buf{}, fmt.Errorf("gomlx: %s is of %s, which goccl does not send", v.ScopeAndName(), v.Shape())
}
