// Package gorgonia trains models of gorgonia data-parallel: every rank computes the gradients of its own batch, goccl
// averages them where they lie, and every rank's solver makes the same step.
//
//	params := gorgonia.Nodes{w0, w1}
//	_, err := G.Grad(loss, params...)
//	m := G.NewTapeMachine(g, G.BindDualValues(params...))
//	d := gorgonia.New(c, params)
//	err = d.Broadcast(ctx, 0) // rank 0's weights for all
//	for range steps {
//		... // this rank's batch
//		err = m.RunAll()
//		err = d.Average(ctx)
//		err = solver.Step(G.NodesToValueGrads(params))
//		m.Reset()
//	}
//
// A gorgonia machine does not say when a gradient is final, so Average begins when all are: no communication is hidden.
//
// gorgonia's Grad writes into nodes of constants that all graphs of a process share: ranks that are goroutines of one process
// build their graphs one after another.
//
// gorgonia stops with a panic on releases of Go that are newer than it knows. This package imports a newer release of its
// go4.org/unsafe/assume-no-moving-gc, with which it runs; whether Go's collector still leaves memory where it is, that
// package's authors judge.
package gorgonia

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	_ "go4.org/unsafe/assume-no-moving-gc" // gorgonia imports it: here as of a release that knows today's Go
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

// DDP averages the gradients of a graph's parameters over the ranks of a Comm. It is used by one goroutine at a time.
type DDP struct {
	c       *ccl.Comm
	params  gorgonia.Nodes
	reducer *ddp.Reducer
	memory  []unsafe.Pointer // of the gradients that reducer has
	scalars []scalar         // by parameter
}

// scalar is where a parameter of one number, or its gradient, is reduced: gorgonia may keep each
// step's elsewhere.
type scalar struct {
	f32 [1]float32
	f64 [1]float64
}

// New returns a DDP of the nodes that are trained, in the same order on all ranks.
func New(c *ccl.Comm, params gorgonia.Nodes) *DDP {
	return &DDP{c: c, params: params, scalars: make([]scalar, len(params))}
}

// Broadcast gives all ranks the parameters of root. It is collective, and fails on all ranks if their models differ.
func (d *DDP) Broadcast(ctx context.Context, root int) error {
	bufs, back := make([]ccl.Buf, len(d.params)), make([]func(), len(d.params))
	var bad error
	for i, n := range d.params {
		b, _, put, err := d.scalars[i].buf(n.Value())
		back[i] = put
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("parameter %q: %w", n.Name(), err))
		}
		bufs[i] = b
	}
	// Making a Reducer compares the lengths and types, whatever this rank has found.
	r, err := ddp.New(ctx, d.c, bufs, nil)
	if err != nil {
		return fmt.Errorf("gorgonia: the parameters, in the order of New: %w", errors.Join(bad, err))
	}
	if err := errors.Join(ddp.Broadcast(ctx, d.c, bufs, root), r.Close()); err != nil {
		return fmt.Errorf("gorgonia: %w", err)
	}
	putBack(back)
	return nil
}

// Average averages the gradients over the ranks, in place: between the machine's RunAll and the solver's Step. It is
// collective. The first call compares the ranks' gradients.
func (d *DDP) Average(ctx context.Context) error {
	bufs, memory, back := make([]ccl.Buf, len(d.params)), make([]unsafe.Pointer, len(d.params)), make([]func(), len(d.params))
	moved := false
	var bad error
	for i, n := range d.params {
		v, err := n.Grad()
		if err == nil {
			bufs[i], memory[i], back[i], err = d.scalars[i].buf(v)
		}
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("the gradient of parameter %q: %w", n.Name(), err))
		}
		moved = moved || d.reducer != nil && memory[i] != d.memory[i]
	}
	if bad != nil && d.reducer != nil { // the others are about to wait for this rank
		err := fmt.Errorf("gorgonia: %w", bad)
		d.c.Abort(err)
		return err
	}
	if d.reducer == nil {
		r, err := ddp.New(ctx, d.c, bufs, nil)
		if err != nil {
			return fmt.Errorf("gorgonia: the gradients, in the order of New: %w", errors.Join(bad, err))
		}
		d.reducer, d.memory = r, memory
	}
	if moved {
		err := errors.New("gorgonia: the machine has put a gradient elsewhere than in the first step: make a new DDP, on all ranks, with a new machine")
		d.c.Abort(err)
		return err
	}
	if err := d.reducer.All(ctx); err != nil {
		return fmt.Errorf("gorgonia: %w", err)
	}
	putBack(back)
	return nil
}

// Hash hashes the bits of the parameters: see ddp.Same.
func (d *DDP) Hash() uint64 {
	h := make([]uint64, len(d.params))
	for i, n := range d.params {
		v := n.Value()
		if v == nil { // it has none yet
			continue
		}
		switch s := v.Data().(type) {
		case []float32:
			h[i] = ddp.Hash(s)
		case []float64:
			h[i] = ddp.Hash(s)
		case float32:
			h[i] = ddp.Hash([]float32{s})
		case float64:
			h[i] = ddp.Hash([]float64{s})
		}
	}
	return ddp.Hash(h)
}

// Close ends what Average runs on. The Comm stays open.
func (d *DDP) Close() error {
	if d.reducer == nil {
		return nil
	}
	return d.reducer.Close()
}

// putBack gives scalars what has become of them.
func putBack(all []func()) {
	for _, put := range all {
		if put != nil {
			put()
		}
	}
}

// buf is the memory of a tensor of float32 or float64 whose elements lie side by side on the host.
// That of a scalar is s, which put brings back.
func (s *scalar) buf(v gorgonia.Value) (b ccl.Buf, at unsafe.Pointer, put func(), err error) {
	switch x := v.(type) {
	case *gorgonia.F32:
		b, at, put = lend(&s.f32, (*float32)(x))
		return b, at, put, nil
	case *gorgonia.F64:
		b, at, put = lend(&s.f64, (*float64)(x))
		return b, at, put, nil
	}
	t, ok := v.(tensor.Tensor)
	if !ok {
		return b, nil, nil, fmt.Errorf("it is a %T, not a tensor or a scalar of float32 or float64: is it part of what was differentiated, and has the machine run?", v)
	}
	if t.RequiresIterator() || !t.IsNativelyAccessible() {
		return b, nil, nil, fmt.Errorf("its elements (%v) do not lie side by side in the memory of the host", t.Shape())
	}
	switch x := t.Data().(type) {
	case []float32:
		return ccl.BufOf(x), unsafe.Pointer(unsafe.SliceData(x)), nil, nil
	case []float64:
		return ccl.BufOf(x), unsafe.Pointer(unsafe.SliceData(x)), nil, nil
	case float32: // a tensor of no dimensions
		s.f32[0] = x
		return ccl.BufOf(s.f32[:]), unsafe.Pointer(&s.f32), func() { t.Memset(s.f32[0]) }, nil
	case float64:
		s.f64[0] = x
		return ccl.BufOf(s.f64[:]), unsafe.Pointer(&s.f64), func() { t.Memset(s.f64[0]) }, nil
	}
	return b, nil, nil, fmt.Errorf("it is of %v: only float32 and float64 are trained over ranks", t.Dtype())
}

// lend copies x to where it is reduced, and back.
func lend[T float32 | float64](to *[1]T, x *T) (ccl.Buf, unsafe.Pointer, func()) {
	to[0] = *x
	return ccl.BufOf(to[:]), unsafe.Pointer(to), func() { *x = to[0] }
}
