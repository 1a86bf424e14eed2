// Package fit trains models of package nn on XLA, on a CPU or on GPUs, on any number of ranks.
//
//	m, err := machine.New(ctx, world, &machine.Options{Plugin: path})
//	t, err := fit.New(ctx, m, model, &fit.Options{Rows: 4, Tokens: 1024, Stage: 3, Clip: 1, Adam: adam})
//	err = t.LoadModel(ctx, "Llama-3.2-1B")
//	for n := 1; n <= steps; n++ {
//		loss, err := t.Step(ctx, n, rate(n), batches(n))
//	}
//	err = t.Export(ctx, "tuned", 5<<30)
//
// A model is trained in one of two layouts. At stage 0 each rank has all of it, and one program computes a
// step, with another for the update where gradients are averaged between. With stages 1 to 3 of ZeRO, or
// with Options.Units, package zero holds what is trained, and there is a program for each kind of
// unit: compile time does not grow with the number of layers, and only the inputs of units are kept
// for the backward pass.
//
// What is never updated, such as the weights under a LoRA, has no gradients, no masters and no
// optimizer state, and may be held in 8 or 4 bits: Options.Base.
//
// All ranks make the same calls in the same order. An error of a rank aborts its Comm, so that the others do not wait.
package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit/internal/steps"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/fit/update"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/nn"
)

// Batch is the rows of a micro batch of a rank: tokens, and what is wanted after each. A wanted token
// below 0 does not count in the loss.
type Batch struct{ Tokens, Wanted []int32 }

// Group is what parameters have of their own: Rate multiplies the learning rate of a step, Decay is the weight decay.
type Group = update.Group

// Storage is how frozen parameters are held: quant.Float32, BF16, Int8 or NF4.
type Storage = quant.Storage

// Options are the same on all ranks.
type Options struct {
	// Rows of Tokens each are a micro batch of one rank.
	Rows, Tokens int
	// Stage is that of ZeRO, 0 to 3.
	Stage int
	// Units has a program for each kind of unit at stage 0, too.
	Units bool
	// Offload keeps masters and optimizer state on the host, which updates them: with Units or a Stage.
	Offload bool
	// Micro is the number of micro batches of a step; default 1.
	Micro int
	// Recompute keeps only the inputs of units for the backward pass, and computes each once more.
	// By units this is always so.
	Recompute bool
	// BF16 has parameters and gradients of what is trained in bfloat16, with float32 masters, where
	// package zero holds them. Parameters are float32 otherwise, and so are adapters.
	BF16 bool
	// Scale, if not nil, has the loss scaled as package amp does, for a model whose Act is float16: gradients that are
	// not finite change nothing, and the scale falls. Each step then waits for its gradients.
	Scale *amp.Options
	// Masked says that wanted tokens may be below 0. The loss is then the mean over the tokens that count on all ranks,
	// whose number takes an exchange per step.
	Masked bool
	// Wait has gradients computed before they are averaged, at stage 0 without Units: for measurements.
	Wait bool
	// Fused has cuDNN compute attention where it fits, on CUDA.
	Fused bool
	// Base is how frozen parameters are held.
	Base Storage
	// Clip scales gradients down to this norm; 0 does not.
	Clip float64
	// Adam has AdamW's numbers. LR is that of a step, and Decay is for parameters of more than one
	// dimension, unless Group is given.
	Adam optim.AdamW
	// Group is the group of a parameter. Nil: Rate 1, and Decay as Adam says.
	Group func(p nn.Param) Group
	// EMA, if not 0, is the decay of a moving average of the parameters, as of optim.EMA.
	EMA float64
	// Seed is that of initial values and of dropout.
	Seed uint64
	// Initial returns the first values of parameter i of the model. Nil: as the model says.
	Initial func(i int, p nn.Param) []float32
}

// Deal returns the micro batches of a rank: add appends one of the rows of a step, which are numbered over all ranks.
// So a row is the same on any number of ranks that rows divide among.
func (o *Options) Deal(rank int, add func(b *Batch, row int) error) ([]Batch, error) {
	list := make([]Batch, max(o.Micro, 1))
	for m := range list {
		for r := range o.Rows {
			if err := add(&list[m], (rank*len(list)+m)*o.Rows+r); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// A Trainer trains a model. One goroutine uses it at a time.
type Trainer struct {
	u     *units.Set
	l     steps.Layout
	scale *amp.Scaler // nil without Options.Scale
}

// New makes a trainer, with the initial values of the model. It is collective.
func New(ctx context.Context, m *machine.Machine, model *nn.Model, o *Options) (*Trainer, error) {
	t := &Trainer{u: &units.Set{M: m}}
	u, err := prepare(model, *o)
	if err != nil {
		return nil, t.fail(err)
	}
	t.u = u
	if err = u.Begin(ctx, m); err == nil {
		t.l, err = steps.New(ctx, u)
	}
	if err == nil && o.Scale != nil {
		t.scale, err = amp.New(ctx, m.World(), o.Scale)
	}
	if err != nil {
		return nil, t.fail(errors.Join(err, t.Close()))
	}
	return t, nil
}

// Text is the program of a step of one rank at stage 0, for a compiler alone: [xla.Plugin.CompileFor]
// compiles it for a device that is not there. Fused counts as on CUDA.
func Text(model *nn.Model, o *Options) (string, error) {
	u, err := prepare(model, *o)
	if err != nil {
		return "", err
	}
	if u.Frozen {
		return "", errors.New("fit: Text of a model with frozen parameters")
	}
	u.Fused = o.Fused
	return steps.Text(u)
}

// prepare checks the options, and finds the parameters.
func prepare(model *nn.Model, o Options) (*units.Set, error) {
	if err := o.check(model); err != nil {
		return nil, err
	}
	return units.New(model, units.Options(o))
}

func (o *Options) check(model *nn.Model) error {
	o.Micro = max(o.Micro, 1)
	switch {
	case o.Rows < 1 || o.Tokens < 1:
		return fmt.Errorf("fit: micro batches of %d rows of %d tokens; both must be at least 1", o.Rows, o.Tokens)
	case o.Stage < 0 || o.Stage > 3:
		return fmt.Errorf("fit: stage %d; the stages of ZeRO are 0 to 3", o.Stage)
	case o.Offload && o.Stage == 0 && !o.Units:
		return errors.New("fit: Offload is for stages 1 to 3, and for Units")
	case !(o.Clip >= 0) || math.IsInf(o.Clip, 0):
		return fmt.Errorf("fit: gradients cannot be clipped to a norm of %v", o.Clip)
	case !(o.EMA >= 0 && o.EMA < 1):
		return fmt.Errorf("fit: EMA with a decay of %v; it is from 0 to below 1", o.EMA)
	case o.Base != "" && !slices.Contains(quant.Storages, o.Base):
		return fmt.Errorf("fit: a base of %q; there are %s, %s, %s and %s", o.Base, quant.Float32, quant.BF16, quant.Int8, quant.NF4)
	case o.Base != "" && o.Base != quant.Float32 && model.LoRA == nil:
		return fmt.Errorf("fit: a base of %s: the model has no LoRA, so nothing is frozen", o.Base)
	case len(model.Units) < 2:
		return fmt.Errorf("fit: a model of %d units; the least are an embedding and a head", len(model.Units))
	}
	if o.Group == nil {
		o.Group = func(p nn.Param) Group {
			if len(p.Dims) > 1 {
				return Group{Rate: 1, Decay: o.Adam.Decay}
			}
			return Group{Rate: 1}
		}
	}
	if o.Initial == nil {
		o.Initial = func(_ int, p nn.Param) []float32 { return p.Initial(o.Seed) }
	}
	return nil
}

// fail aborts the Comm with an error that may be this rank's alone, so that the others hear of it.
func (t *Trainer) fail(err error) error {
	if err != nil {
		t.u.M.World().Abort(err)
	}
	return err
}

// put makes arguments of a batch.
func (t *Trainer) put(b Batch) (in steps.Input, err error) {
	for i, x := range [][]int32{b.Tokens, b.Wanted} {
		if len(x) != t.u.O.Rows*t.u.O.Tokens {
			return in, fmt.Errorf("fit: a batch of %d tokens; %d rows of %d are expected", len(x), t.u.O.Rows, t.u.O.Tokens)
		}
		if at := t.u.Unknown(x, i == 1); at >= 0 {
			return in, fmt.Errorf("fit: row %d of a batch has %s %d at %d, and the model knows %d",
				at/t.u.O.Tokens, []string{"the token", "the wanted token"}[i], x[at], at%t.u.O.Tokens, t.u.Known(i == 1))
		}
		buf, err := xla.Put(t.u.M.Client(), x, t.u.O.Rows, t.u.O.Tokens)
		if err != nil {
			return in, err
		}
		in.Args = append(in.Args, buf)
	}
	return in, nil
}

// counted is how many wanted tokens count.
func counted(wanted []int32) (n int) {
	for _, x := range wanted {
		if x >= 0 {
			n++
		}
	}
	return n
}

// weights are what the losses of micro batches are multiplied by: their mean over ranks and micro
// batches then is the mean over all tokens that count.
func (t *Trainer) weights(ctx context.Context, batches []Batch) ([]float32, error) {
	all, list := []int64{0}, make([]float32, len(batches))
	for i, b := range batches {
		n := counted(b.Wanted)
		all[0] += int64(n)
		list[i] = float32(n)
		if !t.u.O.Masked && n < len(b.Wanted) {
			return nil, errors.New("fit: a wanted token is below 0: set Options.Masked")
		}
	}
	if !t.u.O.Masked {
		return nil, nil
	}
	if err := ccl.AllReduce(ctx, t.u.M.World(), all, all, ccl.Sum); err != nil {
		return nil, err
	}
	for i := range list {
		list[i] *= float32(len(batches)*t.u.M.World().Size()) / float32(max(all[0], 1))
	}
	return list, nil
}

// A Loss is that of a step, which may be computed still.
type Loss []*xla.Buffer

// Step makes step n, counted from 1, with the micro batches of this rank. Read has its loss. Gradients that are not
// finite change nothing. Without Options.Scale the error is zero.ErrNotFinite then, or, at stage 0 without Units, where
// no step waits for its gradients, the loss is NaN.
func (t *Trainer) Step(ctx context.Context, n int, rate float64, batches []Batch) (loss Loss, err error) {
	switch {
	case n < 1 || !(rate >= 0) || math.IsInf(rate, 0):
		return nil, t.fail(fmt.Errorf("fit: step %d with the rate %v: steps count from 1, and a rate is a number from 0 on", n, rate))
	case len(batches) != t.u.O.Micro:
		return nil, t.fail(fmt.Errorf("fit: step %d with %d micro batches; Options.Micro is %d", n, len(batches), t.u.O.Micro))
	}
	weights, err := t.weights(ctx, batches)
	if err != nil {
		return nil, t.fail(err)
	}
	var in []steps.Input
	defer func() {
		for _, x := range in {
			err = errors.Join(err, x.Free())
		}
	}()
	for i, b := range batches {
		x, err := t.put(b)
		in = append(in, x)
		if err != nil {
			return nil, t.fail(err)
		}
		if t.u.O.Masked {
			w, err := xla.Put(t.u.M.Client(), weights[i:i+1])
			if err != nil {
				return nil, t.fail(err)
			}
			in[i].Weight = []*xla.Buffer{w}
		}
		if t.scale != nil {
			s := float32(t.scale.Scale())
			b, err := xla.Put(t.u.M.Client(), []float32{s, 1 / s}, 2)
			if err != nil {
				return nil, t.fail(err)
			}
			in[i].Scale = []*xla.Buffer{b}
		}
		in[i].Key = t.u.O.Seed<<32 ^ uint64((n*t.u.M.World().Size()+t.u.M.World().Rank())*t.u.O.Micro+i)
	}
	taken := n
	if t.scale != nil { // a step that was skipped is none of the optimizer's
		taken = max(n-t.scale.State().Skipped, 1)
	}
	loss, err = t.l.Step(ctx, taken, rate, in)
	if infinite := errors.Is(err, zero.ErrNotFinite); t.scale != nil && (err == nil || infinite) {
		_, err = t.scale.Step(ctx, !infinite)
	}
	return loss, t.fail(err)
}

// Scaler is what scales the loss, nil without Options.Scale. Its State belongs into checkpoints.
func (t *Trainer) Scaler() *amp.Scaler { return t.scale }

// Read waits for the losses of steps, and returns them as means over all ranks.
func (t *Trainer) Read(ctx context.Context, steps ...Loss) ([]float64, error) {
	mean := make([]float64, len(steps))
	for i, list := range steps {
		for _, b := range list {
			x := []float32{0}
			if err := xla.Get(b, x); err != nil {
				return nil, t.fail(err)
			}
			mean[i] += float64(x[0]) / float64(len(list))
		}
		if err := xla.FreeAll(list...); err != nil {
			return nil, t.fail(err)
		}
	}
	return mean, ccl.AllReduce(ctx, t.u.M.World(), mean, mean, ccl.Avg)
}

// Tensors are what this rank has of a checkpoint: what is trained, by the parameters' names, with
// AdamW's moments and the moving average behind prefixes. Unless filled is set they need only be
// loaded into, for Restore.
func (t *Trainer) Tensors(ctx context.Context, filled bool) ([]ckpt.Tensor, error) {
	return t.l.Tensors(ctx, filled)
}

// Restore sets the trainer to what was loaded into Tensors. It is collective.
func (t *Trainer) Restore(ctx context.Context, list []ckpt.Tensor) error {
	return t.fail(t.l.Restore(ctx, list))
}

// Swap exchanges the parameters with their moving average, as to evaluate that. A second one exchanges them back.
func (t *Trainer) Swap(ctx context.Context) error {
	if t.u.O.EMA == 0 {
		return t.fail(errors.New("fit: Swap without a moving average: set Options.EMA"))
	}
	return t.fail(t.l.Swap(ctx))
}

// Bytes is what this rank holds of what is trained, where package zero holds it.
func (t *Trainer) Bytes() zero.Bytes { return t.l.Bytes() }

// Machine is the machine that the trainer runs on.
func (t *Trainer) Machine() *machine.Machine { return t.u.M }

// Params lists the parameters by unit.
func (t *Trainer) Params() [][]nn.Param { return t.u.Params }

// Close frees the model, before its machine.
func (t *Trainer) Close() error { return t.u.Close() }
