// Package tp is tensor parallelism (Megatron-LM, Shoeybi et al. 2019) with its sequence parallelism (Korthikanti et al.
// 2022): how weights are split over the ranks of a Comm, and the exchanges around a pair of linear layers, the first
// split by columns, the second by rows. Enter and Leave are Megatron's f and g.
//
//	x, err := tp.Enter(ctx, g, full, x)         // identity; with Sequence all-gather
//	y = gelu(x * A_columns) * B_rows            // a partial sum on each rank
//	y, err = tp.Leave(ctx, g, y, partial)       // all-reduce; with Sequence reduce-scatter
//	...
//	d, err := tp.LeaveGrad(ctx, g, full, dy)    // identity; with Sequence all-gather
//	dx, err := tp.EnterGrad(ctx, g, dx, dfull)  // all-reduce; with Sequence reduce-scatter
//
// A transformer layer has two such pairs, attention and MLP. Forward it sums twice and backward twice, each time over
// tokens*width numbers, of which a rank sends 2(n-1)/n for n ranks. With Sequence each of the four sums is cut in two
// halves, which move the same bytes in all, and the activations between the pairs take 1/n of the memory.
//
// Activations are row-major, [tokens][width]. With Sequence rank r holds part r of the tokens, in order. All exchanges
// are exposed: the layer waits for them, so the ranks of a Group belong on one host.
package tp

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Float is what activations and gradients are made of.
type Float interface {
	~float32 | ~float64 | ccl.BFloat16
}

// Group is the ranks that share the layers of one model. It is used by one goroutine at a time. A call whose lengths do
// not fit on some rank fails the Comm, so that all ranks have an error, with that rank's reason.
type Group struct {
	// Comm is these ranks.
	Comm *ccl.Comm
	// Sequence splits the tokens between the pairs of layers.
	Sequence bool

	stats   Stats
	scratch []float64 // of CrossEntropy
	packed  any       // of SumReplicas: a slice of its type
}

// Stats are what the exchanges of a Group took.
type Stats struct {
	// Calls is the number of exchanges.
	Calls int
	// Bytes is the size of the vectors that were exchanged, whole.
	Bytes int64
	// Time is all of it exposed.
	Time time.Duration
}

// Stats returns what the exchanges since the last call of Stats took.
func (g *Group) Stats() Stats {
	s := g.stats
	g.stats = Stats{}
	return s
}

// count adds an exchange that began at t.
func (g *Group) count(t time.Time, bytes int) {
	g.stats.Calls++
	g.stats.Bytes += int64(bytes)
	g.stats.Time += time.Since(t)
}

// usable says what keeps g from being used in a call of that name.
func (g *Group) usable(what string) error {
	if g == nil || g.Comm == nil {
		return fmt.Errorf("tp: %s: the Group is nil, or has no Comm", what)
	}
	return nil
}

// failed is why an exchange has failed. Unless the Comm has, as of what is wrong with the memory of this rank alone, it
// does.
func (g *Group) failed(what string, err error) error {
	return g.refuse(fmt.Errorf("tp: %s: %w", what, err))
}

// fit checks that full is the parts of all ranks.
func (g *Group) fit(what string, full, part int) error {
	if n := g.Comm.Size(); full != n*part {
		return g.refuse(fmt.Errorf("tp: %s: %d elements of all tokens and %d of this rank's; the tokens must divide among the %d ranks",
			what, full, part, n))
	}
	return nil
}

// refuse fails the Comm with err, what is wrong with a call here: the other ranks may have begun theirs.
func (g *Group) refuse(err error) error {
	g.Comm.Abort(err)
	return err
}

// gather makes full of the ranks' parts.
func gather[T Float](ctx context.Context, g *Group, what string, full, part []T) ([]T, error) {
	switch err := g.usable(what); {
	case err != nil:
		return nil, err
	case !g.Sequence:
		return part, nil
	}
	if err := g.fit(what, len(full), len(part)); err != nil {
		return nil, err
	}
	defer g.count(time.Now(), len(full)*ccl.TypeOf[T]().Size())
	if err := ccl.AllGather(ctx, g.Comm, full, part); err != nil {
		return nil, g.failed(what, err)
	}
	return full, nil
}

// sum sums full over the ranks, in place, or into this rank's part.
func sum[T Float](ctx context.Context, g *Group, what string, part, full []T) ([]T, error) {
	if err := g.usable(what); err != nil {
		return nil, err
	}
	out := full
	var err error
	if !g.Sequence {
		defer g.count(time.Now(), len(full)*ccl.TypeOf[T]().Size())
		err = ccl.AllReduce(ctx, g.Comm, full, full, ccl.Sum)
	} else {
		if err := g.fit(what, len(full), len(part)); err != nil {
			return nil, err
		}
		defer g.count(time.Now(), len(full)*ccl.TypeOf[T]().Size())
		out, err = part, ccl.ReduceScatter(ctx, g.Comm, part, full, ccl.Sum)
	}
	if err != nil {
		return nil, g.failed(what, err)
	}
	return out, nil
}

// Enter returns what a column-split layer needs, the activations of all tokens, given what this rank has of them, x. It
// fills full and returns it. Without Sequence x is whole: Enter returns it, and full may be nil.
func Enter[T Float](ctx context.Context, g *Group, full, x []T) ([]T, error) {
	return gather(ctx, g, "Enter", full, x)
}

// EnterGrad is the gradient of Enter: it sums the ranks' gradients of what Enter returned. It fills dx with this rank's
// part and returns it. Without Sequence it sums in place and returns dfull, and dx may be nil.
func EnterGrad[T Float](ctx context.Context, g *Group, dx, dfull []T) ([]T, error) {
	return sum(ctx, g, "EnterGrad", dx, dfull)
}

// Leave sums the partial results of a row-split layer. It fills y with this rank's tokens and returns it. Without
// Sequence it sums in place and returns partial, and y may be nil.
func Leave[T Float](ctx context.Context, g *Group, y, partial []T) ([]T, error) {
	return sum(ctx, g, "Leave", y, partial)
}

// LeaveGrad is the gradient of Leave: it returns the gradients of all tokens, given those of what Leave returned. It
// fills full and returns it. Without Sequence it returns dy, and full may be nil.
func LeaveGrad[T Float](ctx context.Context, g *Group, full, dy []T) ([]T, error) {
	return gather(ctx, g, "LeaveGrad", full, dy)
}

// SumGrads sums the gradients of parameters that every rank holds whole, but with Sequence sees
// with its own tokens only: norms, biases after a row-split layer, embeddings. All are one group of
// calls, and if ctx ends in it, the Comm fails. Without Sequence it does nothing.
func SumGrads[T Float](ctx context.Context, g *Group, grads ...[]T) error {
	if err := g.usable("SumGrads"); err != nil || !g.Sequence || len(grads) == 0 {
		return err
	}
	n := 0
	for _, x := range grads {
		n += len(x)
	}
	defer g.count(time.Now(), n*ccl.TypeOf[T]().Size())
	w := g.Comm.On(nil).Group(func(q ccl.Queue) error {
		for _, x := range grads {
			q.AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum)
		}
		return nil
	})
	err := w.Wait(ctx)
	if err != nil { // of ctx, too; then the calls end before the gradients are the caller's again
		err = g.failed("SumGrads", err)
		_ = w.Wait(context.Background())
	}
	return err
}
