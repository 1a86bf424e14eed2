package ddp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/train/internal/vec"
	"github.com/goccl/goccl/train/optim"
)

// ErrNotFinite is the cause of an error of Norm and Clip where a gradient is infinite or no number.
// All ranks get it, for all have the same gradients: a program may skip such a step.
var ErrNotFinite = errors.New("the norm of the gradients is not finite")

// Norm is the global norm of the gradients, between a Wait and the Ready that follows. It reads
// them and sends nothing: all ranks have the same bits, and get the same norm. It is for host
// memory.
func (r *Reducer) Norm() (float64, error) {
	if err := r.between("Norm"); err != nil {
		return 0, err
	}
	sum, odd := 0., -1
	for i, g := range r.grads {
		if !vec.Holds(g) {
			return 0, fmt.Errorf("ddp: Norm: gradient %d is %v on a device, or of a type that has no norm", i, g.Type())
		}
		s := vec.SumSquares(g)
		if sum += s; odd < 0 && (math.IsNaN(s) || math.IsInf(s, 0)) {
			odd = i
		}
	}
	norm := math.Sqrt(sum)
	switch {
	case odd >= 0:
		return norm, fmt.Errorf("ddp: gradient %d: %w", odd, ErrNotFinite)
	case math.IsInf(norm, 0):
		return norm, fmt.Errorf("ddp: all gradients together: %w", ErrNotFinite)
	}
	return norm, nil
}

// Clip is Norm, and scales the gradients by optim.ClipFactor, down to the norm most where theirs is
// larger. It returns theirs. After an error they are as they were.
func (r *Reducer) Clip(most float64) (float64, error) {
	if math.IsNaN(most) || most < 0 {
		return 0, fmt.Errorf("ddp: gradients cannot be clipped to a norm of %v", most)
	}
	norm, err := r.Norm()
	by := optim.ClipFactor(norm, most)
	if err != nil || by == 1 {
		return norm, err
	}
	for _, g := range r.grads {
		vec.Scale(g, by)
	}
	return norm, nil
}

// between says what keeps the gradients from being those of a whole step.
func (r *Reducer) between(call string) error {
	if r.closed {
		return errClosed
	}
	if i := r.someReady(); i >= 0 {
		return fmt.Errorf("ddp: %s: gradient %d is Ready and may be under way; Wait first", call, i)
	}
	return nil
}

// someReady is a gradient that is ready in the step under way; -1: none.
func (r *Reducer) someReady() int { return slices.Index(r.ready, true) }
