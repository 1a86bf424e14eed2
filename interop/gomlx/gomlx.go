// Package gomlx trains models of gomlx data-parallel: every rank computes the gradients of its own
// batch, goccl averages them, and every rank makes the same step.
//
//	opt, err := gomlx.New(c, backend, mctx, optimizers.Adam().Done())
//	trainer := train.NewTrainer(backend, mctx, model, losses.MeanSquaredError, opt, nil, nil)
//	loop := train.NewLoop(trainer)
//	opt.Attach(ctx, loop)
//	_, err = loop.RunSteps(dataset, 1000) // a dataset of this rank's samples
//
// Every step copies the gradients into memory of the host that stays, for gomlx makes new memory
// for each result, and back. With gomlx's backend "xla", and the build tag xla, OnXLA averages them
// in XLA's own memory in its place, on a GPU over NCCL:
//
//	backend, err := xla.NewWithOptions(plugin, options) // of gomlx's backends/xla
//	c, err := ccl.Join(ctx, &ccl.Options{Backend: "nccl"})
//	d, err := cuda.At(c.Place().Device) // the device that XLA has, too
//	s, err := d.NewStream()
//	err = opt.OnXLA(gomlx.XLA{Device: d, Stream: s})
//
// With 16.8 million parameters on two ranks that shared an H100 exchange and optimizer took 48 ms a
// step in place and 53 by views, where NCCL went through sockets, and 82 by way of the host.
//
// On a GPU the gradient of a matrix product costs most: gomlx v0.26.0 writes it as a broadcast, a
// multiplication and a sum, which XLA does not turn into a product again. GPT-2 with 124 M
// parameters, at one row of 1,024 tokens, takes 125 ms a step on an H100, 8,200 tokens a second.
// With gradients that are products, as package xla/hlo writes them, it is 394,000 at 8 rows.
//
// gomlx v0.26.0's own backend has data races between operations that it runs in parallel; backends.NewWithConfig with
// "go:ops_sequential" has none, and gives the same bits in every run.
//
// What gomlx prints and plots is of the rank that prints it: its loss is that of its own batches.
// Checkpoints are gomlx's; let rank 0 write them. Variables that are not trained, such as the
// averages of batch normalization, stay each rank's own.
//
// With the Trainer's AccumulateGradients the ranks exchange their gradients once for all of its steps. Give the Trainer
// opt.Model(model) in the place of model then, so that the first of them begins with rank 0's values on all ranks.
//
// An error that one rank has in building the graph, in the exchange or in the optimizer fails the
// Comm, so the others have it, too, and nobody waits. An error of the model or of the dataset is
// not seen here: Close or Abort the Comm when the loop returns one.
package gomlx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/context/initializers"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

// Scope is where the gradients lie among the variables of the model.
const Scope = "/goccl_gradients"

// Optimizer is an optimizer for gomlx's train.Trainer whose training step computes gradients only.
// Step averages them over the ranks and applies them; Attach lets a train.Loop do that.
type Optimizer struct {
	c       *ccl.Comm
	backend backends.Backend
	model   *mlctx.Context
	inner   withGradients
	apply   *mlctx.Exec

	params, grads []*mlctx.Variable // as of the first training graph, in gomlx's order
	loss          dtypes.DType
	flat          *flat
	reducer       *ddp.Reducer

	exchange exchange // nil: gradients are averaged in flat

	alike  bool // all ranks have had rank 0's values
	passed int  // steps of the Trainer since the last Step
	agreed bool // ranks accumulate alike
}

// places are where gradients are averaged.
var places = [...]string{"on the host", "where XLA has them", "in views"}

// exchange averages gradients elsewhere than in memory of the host.
type exchange interface {
	place() int // among places: all ranks have the same
	// average makes the gradients the means over the ranks, and returns what the optimizer's graph
	// takes for those of flat.vars: nothing where the variables have them. An error of this rank alone
	// it has told.
	average(ctx context.Context, o *Optimizer) ([]any, error)
	close() error
}

// withGradients is what an optimizer must be: gomlx's SGD and Adam are.
type withGradients interface {
	optimizers.Interface
	train.OptimizeWithGradients
}

var _ optimizers.Interface = (*Optimizer)(nil)

// New returns inner as an optimizer over the ranks of c. It fails if inner cannot take gradients
// that others have computed (train.OptimizeWithGradients); gomlx's SGD and Adam can.
func New(c *ccl.Comm, backend backends.Backend, model *mlctx.Context, inner optimizers.Interface) (*Optimizer, error) {
	takes, ok := inner.(withGradients)
	if !ok {
		return nil, fmt.Errorf("gomlx: the optimizer %T does not take gradients (train.OptimizeWithGradients), which are averaged before it may use them: gomlx's SGD and Adam do", inner)
	}
	return &Optimizer{c: c, backend: backend, model: model, inner: takes}, nil
}

// Model is fn for a Trainer that accumulates gradients: the first graph of a training step that is
// built with it gives all ranks the values that rank 0 has, which is collective.
func (o *Optimizer) Model(fn train.ModelFn) train.ModelFn {
	return func(ctx *mlctx.Context, spec any, inputs []*graph.Node) []*graph.Node {
		out := fn(ctx, spec, inputs)
		if g := inputs[0].Graph(); !o.alike && ctx.IsTraining(g) {
			o.guard(func() error { return o.broadcast(ctx, g) })
			o.alike = true
		}
		return out
	}
}

// UpdateGraph is for train.Trainer, which calls it while it builds the graph of a training step. The first call is
// collective: it compares the models, and gives all ranks the values that rank 0 has.
func (o *Optimizer) UpdateGraph(ctx *mlctx.Context, g *graph.Graph, loss *graph.Node) {
	o.guard(func() error {
		return o.updateGraph(ctx, g, ctx.BuildTrainableVariablesGradientsGraph(loss), loss.DType())
	})
}

// UpdateGraphWithGradients is UpdateGraph for a Trainer that accumulates gradients, once it has as many as it should.
func (o *Optimizer) UpdateGraphWithGradients(ctx *mlctx.Context, grads []*graph.Node, loss dtypes.DType) {
	o.guard(func() error {
		switch {
		case len(grads) == 0:
			return errors.New("gomlx: no gradients")
		case !o.alike:
			return errors.New("gomlx: the Trainer accumulates gradients, and each rank has begun with values of its own: give train.NewTrainer opt.Model(model)")
		}
		return o.updateGraph(ctx, grads[0].Graph(), grads, loss)
	})
}

// common is an error that all ranks have.
type common struct{ error }

func (e common) Unwrap() error { return e.error }

// failed is err. Unless all ranks have it, it fails the Comm: the others wait for this one.
func (o *Optimizer) failed(err error) error {
	if err != nil && !errors.As(err, new(common)) {
		o.c.Abort(err)
	}
	return err
}

// guard runs what builds a part of a graph. It panics with an error, as gomlx's own functions do:
// the Trainer's caller gets that as an error.
func (o *Optimizer) guard(f func() error) {
	done := false
	defer func() {
		if !done {
			r := recover() // of gomlx, or nil where this goroutine ends
			err, ok := r.(error)
			if !ok {
				err = fmt.Errorf("gomlx: the graph of a training step is not built: %v", r)
			}
			_ = o.failed(err)
			if r != nil {
				panic(r)
			}
		}
	}()
	err := o.failed(f())
	done = true
	if err != nil {
		panic(err)
	}
}

func (o *Optimizer) updateGraph(ctx *mlctx.Context, g *graph.Graph, nodes []*graph.Node,
	loss dtypes.DType) (err error) {
	ctx.EnumerateGraphParams(g, func(_, key string, _ any) {
		if key == train.TrainerPerStepUpdateGraphFnParamKey {
			err = errors.New("gomlx: the model has updates of its own for every step (train.AddPerStepUpdateGraphFn), which would run before the averaged gradients are applied")
		}
	})
	if err != nil {
		return err
	}
	var params []*mlctx.Variable
	for v := range ctx.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			params = append(params, v)
		}
	}
	if len(params) == 0 || len(params) != len(nodes) {
		return fmt.Errorf("gomlx: %d variables to train and %d gradients", len(params), len(nodes))
	}
	if o.params == nil {
		if err := o.begin(ctx, g, params, loss); err != nil {
			return err
		}
	}
	for i, v := range params {
		if i >= len(o.params) || v != o.params[i] || len(params) != len(o.params) {
			return fmt.Errorf("gomlx: this graph trains other variables than the first one (%s): all graphs of a Trainer must train the same", v.ScopeAndName())
		}
		o.grads[i].SetValueGraph(nodes[i])
	}
	return nil
}

// begin makes the variables of the gradients and the Reducer, and gives all ranks rank 0's model.
func (o *Optimizer) begin(ctx *mlctx.Context, g *graph.Graph, params []*mlctx.Variable, loss dtypes.DType) error {
	var grads []*mlctx.Variable
	for _, v := range params {
		grads = append(grads, ctx.Checked(false).InAbsPath(Scope+v.Scope()).WithInitializer(initializers.Zero).
			VariableWithShape(v.Name(), v.Shape()).SetTrainable(false))
	}
	f, err := newFlat(grads)
	if err != nil {
		return err
	}
	r, err := ddp.New(context.Background(), o.c, f.bufs, nil)
	if err != nil {
		return common{fmt.Errorf("gomlx: the gradients of the model, by name (gradient 0 is that of %s): %w",
			f.vars[0].Name(), err)}
	}
	if err := o.broadcast(ctx, g); err != nil {
		return errors.Join(o.failed(err), r.Close())
	}
	o.alike = true
	o.params, o.grads, o.loss, o.flat, o.reducer = params, grads, loss, f, r
	return nil
}

// broadcast gives all ranks the numbers that rank 0 has in the variables of g: weights, whether
// they are trained or not, and the optimizer's state. The state of the random numbers stays each
// rank's own, so that they drop out differently.
func (o *Optimizer) broadcast(ctx *mlctx.Context, g *graph.Graph) error {
	if err := ctx.InitializeVariables(o.backend, nil); err != nil {
		return fmt.Errorf("gomlx: the variables: %w", err)
	}
	var vars []*mlctx.Variable
	for v := range ctx.IterVariables() {
		accumulated := strings.HasPrefix(v.Scope(), mlctx.ScopeSeparator+train.AccumulatedGradientsScope)
		if v.InUseByGraph(g) && v.Name() != mlctx.RNGStateVariableName && !slices.Contains(o.grads, v) && !accumulated {
			vars = append(vars, v)
		}
	}
	for _, v := range byName(vars) {
		t, err := v.Value()
		if err != nil {
			return fmt.Errorf("gomlx: %s: %w", v.ScopeAndName(), err)
		}
		bad := t.MutableFlatData(func(data any) {
			var b ccl.Buf
			if b, err = buf(v, data); err == nil {
				err = ddp.Broadcast(context.Background(), o.c, []ccl.Buf{b}, 0)
			}
		})
		if err := errors.Join(err, bad); err != nil {
			return fmt.Errorf("gomlx: rank 0's %s: %w", v.ScopeAndName(), err)
		}
	}
	return nil
}

// Gradients returns the variables that hold the gradients, once there are any. They need no place in a checkpoint:
//
//	handler.ExcludeVarsFromSaving(opt.Gradients()...)
func (o *Optimizer) Gradients() []*mlctx.Variable { return o.grads }

// Attach makes loop call Step after each of its training steps, before its other hooks; of a
// Trainer that accumulates gradients, after each that has as many as it should. The loop ends with
// Step's error.
func (o *Optimizer) Attach(ctx context.Context, loop *train.Loop) {
	loop.OnStep("goccl", train.Priority(math.MinInt32), func(loop *train.Loop, _ []*tensors.Tensor) error {
		n := max(loop.Trainer.NumAccumulatingSteps(), 1)
		if o.passed++; o.passed < n {
			return nil
		}
		o.passed = 0
		if err := o.agree(ctx, n); err != nil {
			return err
		}
		return o.Step(ctx)
	})
}

// agree compares, once, how many steps the ranks accumulate, and where they average.
func (o *Optimizer) agree(ctx context.Context, n int) error {
	if o.agreed {
		return nil
	}
	all, place := make([]int, 2*o.c.Size()), 0
	if o.exchange != nil {
		place = o.exchange.place()
	}
	if err := ccl.AllGather(ctx, o.c, all, []int{n, place}); err != nil {
		return fmt.Errorf("gomlx: %w", err)
	}
	for r := range o.c.Size() {
		switch {
		case all[2*r] != all[0]:
			return fmt.Errorf("gomlx: AccumulateGradients: rank %d has %d steps, and rank 0 has %d", r, all[2*r], all[0])
		case all[2*r+1] != all[1]:
			return fmt.Errorf("gomlx: OnXLA: rank %d averages %s, and rank 0 %s", r, places[all[2*r+1]], places[all[1]])
		}
	}
	o.agreed = true
	return nil
}

// Step averages the gradients of the last training step over the ranks, and applies them. It is
// collective. The first one gives all ranks the state that the optimizer has on rank 0.
func (o *Optimizer) Step(ctx context.Context) error {
	if o.reducer == nil {
		return o.failed(errors.New("gomlx: Step before the first training step: the Trainer must have this Optimizer"))
	}
	grads, err := o.average(ctx)
	if err != nil {
		return err
	}
	if o.apply == nil {
		var build any = o.applyGraph
		if grads != nil {
			build = o.applyArgs
		}
		e, err := mlctx.NewExecAny(o.backend, o.model.Checked(false), build)
		if err != nil {
			return o.failed(fmt.Errorf("gomlx: the graph of the optimizer: %w", err))
		}
		o.apply = e
	}
	if _, err := o.apply.Exec(grads...); err != nil {
		return o.failed(fmt.Errorf("gomlx: the optimizer: %w", err))
	}
	return nil
}

// average averages the gradients of the last training step: in the variables, or in what it returns.
func (o *Optimizer) average(ctx context.Context) ([]any, error) {
	if o.exchange != nil {
		return o.exchange.average(ctx, o)
	}
	if err := o.flat.copy(true); err != nil {
		return nil, o.failed(err)
	}
	if err := o.reducer.All(ctx); err != nil {
		return nil, fmt.Errorf("gomlx: %w", err)
	}
	return nil, o.failed(o.flat.copy(false))
}

// applyGraph builds the graph of the optimizer's part of a step.
func (o *Optimizer) applyGraph(ctx *mlctx.Context, g *graph.Graph) *graph.Node {
	return o.applied(ctx, g, func(v *mlctx.Variable) *graph.Node { return v.ValueGraph(g) })
}

// applyArgs is applyGraph with the gradients of flat.vars as arguments.
func (o *Optimizer) applyArgs(ctx *mlctx.Context, args []*graph.Node) *graph.Node {
	return o.applied(ctx, args[0].Graph(),
		func(v *mlctx.Variable) *graph.Node { return args[slices.Index(o.flat.vars, v)] })
}

func (o *Optimizer) applied(ctx *mlctx.Context, g *graph.Graph,
	gradient func(v *mlctx.Variable) *graph.Node) *graph.Node {
	ctx.SetTraining(g, true)
	grads := make([]*graph.Node, len(o.grads))
	for i, v := range o.grads {
		grads[i] = gradient(v)
		o.params[i].ValueGraph(g) // optimizers look for the variables that a graph uses
	}
	o.inner.UpdateGraphWithGradients(ctx, grads, o.loss)
	if err := o.broadcast(ctx, g); err != nil { // rank 0 alone may have loaded a checkpoint
		panic(err)
	}
	return graph.ScalarZero(g, o.loss)
}

// Clear is for train.Trainer: it removes the variables of the optimizer.
func (o *Optimizer) Clear(ctx *mlctx.Context) error { return o.inner.Clear(ctx) }

// Close ends what Step runs on. The Comm stays open.
func (o *Optimizer) Close() error {
	if o.apply != nil {
		o.apply.Finalize()
	}
	if o.reducer == nil {
		return nil
	}
	err := o.reducer.Close()
	if o.exchange != nil {
		err = errors.Join(err, o.exchange.close())
	}
	return err
}
