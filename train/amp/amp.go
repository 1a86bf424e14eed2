// Package amp scales a loss so that its gradients fit into float16, whose smallest number is 6e-8:
// PyTorch's GradScaler and Megatron's dynamic loss scale. The scale falls when a gradient becomes
// infinite, and grows again after many steps without. bfloat16 needs none of this. Quantize and Scales are for tensors
// in 8-bit floats, each with a scale of its own.
//
//	loss *= s.Scale()                                   // before the backward pass, on every rank
//	...
//	by := s.Factor(clip, norm)                          // of the gradients as they are: sums or averages over ranks
//	ok, err := s.Step(ctx, !errors.Is(err, zero.ErrNotFinite))
//	if ok { amp.Multiply(wide, gradients, by); update } // else all ranks skip the step
//
// With package zero the update is within its Step, which comes first: set zero.Options.NormOver to
// the ranks of all stages and of tensor parallelism, and not Unchecked, so that all of them get
// ErrNotFinite in one step.
//
// All ranks of a job must skip the same steps, and have one scale: those of a pipeline's stages and
// of tensor parallelism as well, whose gradients differ. So the decision is collective, over a Comm
// with all of them: an all-reduce of a byte.
package amp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
	"github.com/goccl/goccl/train/optim"
)

// Options of a Scaler. New compares them between ranks.
type Options struct {
	// Init is the scale to begin with; default 65536.
	Init float64
	// Growth is what the scale is multiplied by after Interval steps without overflow, and Backoff in a step with one;
	// default 2 and 0.5. Powers of two change no bit of a gradient.
	Growth, Backoff float64
	// Interval is the number of steps before the scale grows; default 2000.
	Interval int
	// Least is the scale below which Step fails, since what is infinite then is no matter of the scale; default 2^-14.
	Least float64
}

// Scaler is the scale of a loss. It is used by one goroutine at a time.
type Scaler struct {
	c     *ccl.Comm
	o     Options
	state State
	fine  [1]uint8 // of this step
}

// State is what a checkpoint needs of a Scaler.
type State struct {
	// Scale is what the loss is multiplied by.
	Scale float64 `json:"scale"`
	// Good is the number of steps without overflow since the scale has changed.
	Good int `json:"good"`
	// Skipped is the number of steps that were skipped so far.
	Skipped int `json:"skipped"`
}

// ErrTooSmall is the cause of Step's error, on all ranks, where the scale has fallen below Options.Least.
var ErrTooSmall = errors.New("gradients are not finite at the least scale")

// New makes a Scaler for all ranks of c, which all call it.
func New(ctx context.Context, c *ccl.Comm, o *Options) (*Scaler, error) {
	if c == nil {
		return nil, errors.New("amp: the Comm is nil")
	}
	s := &Scaler{c: c}
	if o != nil {
		s.o = *o
	}
	s.o.Init, s.o.Least, s.o.Interval = cmp.Or(s.o.Init, 65536), cmp.Or(s.o.Least, 1./(1<<14)), cmp.Or(s.o.Interval, 2000)
	s.o.Growth, s.o.Backoff = cmp.Or(s.o.Growth, 2), cmp.Or(s.o.Backoff, .5)
	var bad error
	switch {
	case !(s.o.Least > 0 && s.o.Init >= s.o.Least && s.o.Init <= math.MaxFloat32):
		bad = fmt.Errorf("a scale that begins with %v and may fall to %v", s.o.Init, s.o.Least)
	case !(s.o.Growth >= 1 && s.o.Growth <= math.MaxFloat32 && s.o.Backoff > 0 && s.o.Backoff < 1):
		bad = fmt.Errorf("a scale that grows by a factor of %v and falls by one of %v", s.o.Growth, s.o.Backoff)
	case s.o.Interval < 1:
		bad = fmt.Errorf("a scale that grows after %d steps", s.o.Interval)
	}
	s.state.Scale = s.o.Init
	return s, same.Args(ctx, c, "amp", bad, fmt.Sprintf("%+v", s.o))
}

// Scale is what the loss is multiplied by in this step.
func (s *Scaler) Scale() float64 { return s.state.Scale }

// Factor is what gradients of the scaled loss are multiplied by to be those of the loss, clipped to
// a norm of clip, if that is not 0. norm is that of the gradients as they are, as zero's Norm and
// ddp's say it.
func (s *Scaler) Factor(clip, norm float64) float64 {
	by := 1 / s.state.Scale
	if clip > 0 {
		by *= optim.ClipFactor(norm*by, clip)
	}
	return by
}

// Step ends a step: finite is false if a gradient here was infinite or no number. ok is false on
// all ranks if it was on any: then no rank updates its parameters, and the scale falls.
func (s *Scaler) Step(ctx context.Context, finite bool) (ok bool, err error) {
	s.fine[0] = 0
	if finite {
		s.fine[0] = 1
	}
	if err := ccl.AllReduce(ctx, s.c, s.fine[:], s.fine[:], ccl.Min); err != nil {
		return false, fmt.Errorf("amp: Step: %w", err)
	}
	st := &s.state
	if s.fine[0] == 0 {
		st.Good = 0
		st.Skipped++
		if st.Scale*s.o.Backoff < s.o.Least {
			return false, fmt.Errorf("amp: Step: the scale is %v: %w", st.Scale, ErrTooSmall)
		}
		st.Scale *= s.o.Backoff
		return false, nil
	}
	if st.Good++; st.Good >= s.o.Interval {
		st.Scale, st.Good = min(st.Scale*s.o.Growth, math.MaxFloat32), 0
	}
	return true, nil
}

// State is that of the Scaler, to be saved with the job's.
func (s *Scaler) State() State { return s.state }

// Restore continues from a State, which all ranks have loaded.
func (s *Scaler) Restore(st State) error {
	if !(st.Scale >= s.o.Least && st.Scale <= math.MaxFloat32) || st.Good < 0 || st.Skipped < 0 {
		return fmt.Errorf("amp: Restore of %+v", st)
	}
	s.state = st
	return nil
}

// Multiply sets dst to src times by, and reports whether all of it is finite. What is multiplied is
// rounded once, to dst's type: small gradients in float16 are not lost in a float32. dst may be
// src, and is as long: else nothing is set, and that is not finite.
func Multiply[D ~float32 | ~float64, S ~float32 | ~float64 | ccl.Float16 | ccl.BFloat16](dst []D, src []S,
	by float64) (finite bool) {
	if len(src) != len(dst) {
		return false
	}
	switch x := any(src).(type) {
	case []ccl.Float16:
		return multiply(dst, by, func(i int) float64 { return float64(x[i].Float32()) })
	case []ccl.BFloat16:
		return multiply(dst, by, func(i int) float64 { return float64(x[i].Float32()) })
	}
	return multiply(dst, by, func(i int) float64 { return float64(src[i]) })
}

func multiply[D ~float32 | ~float64](dst []D, by float64, at func(i int) float64) bool {
	odd := 0.
	for i := range dst {
		x := D(at(i) * by)
		dst[i] = x
		odd += float64(x - x) // 0, or no number for good
	}
	return odd == 0
}
