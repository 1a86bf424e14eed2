package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/events"
	"github.com/goccl/goccl/train/history/grads"
	"github.com/goccl/goccl/train/history/timeline"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// tracking is what the flags say about what is recorded and recomputed.
type tracking struct {
	recompute, norms bool
	events           string
	files            struct{ csv, timeline string }
}

func (t *tracking) flags(f *flag.FlagSet) {
	f.BoolVar(&t.recompute, "recompute", false,
		"keep the inputs of blocks only, and compute each once more for its backward pass: less memory, a third more work")
	f.BoolVar(&t.norms, "norms", false,
		"record the gradients' norm by layer, and with several replicas the gradient noise scale, in rows")
	f.StringVar(&t.events, "events", "", "`directory` for TensorBoard's event files")
	f.StringVar(&t.files.timeline, "timeline", "",
		"`file` for what each rank did in the last steps, by unit and call, for ui.perfetto.dev")
	f.StringVar(&t.files.csv, "csv", "", "`file` for a table of all metrics, at the end")
}

// open opens the file of events on the first rank. finish closes it, and where the run has ended well
// it writes the table, and says whether all steps were written.
func (t *tracking) open(world *ccl.Comm,
	o *history.Options) (finish func(h *history.History, err error) error, err error) {
	if world.Rank() > 0 {
		return func(_ *history.History, err error) error { return err }, nil
	}
	var file *os.File
	if t.events != "" {
		if file, err = events.Create(t.events); err != nil {
			world.Abort(err)
			return nil, err
		}
		o.Events = file
	}
	return func(h *history.History, err error) error {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return err
		}
		err = h.Err() // the last step's, which no Log tells
		if t.files.csv == "" || len(h.Names()) == 0 {
			return err
		}
		out, failed := files.Create(t.files.csv)
		if failed != nil {
			return errors.Join(err, failed)
		}
		return errors.Join(err, h.CSV(out), out.Close())
	}, nil
}

// drawn says whether all ranks have a timeline, or none, as draw needs it at the end. It is collective.
func drawn(ctx context.Context, world *ccl.Comm, line *timeline.Timeline) error {
	with := []int8{0, 0} // the most of all ranks, and less than 0 the least
	if line != nil {
		with = []int8{1, -1}
	}
	if err := ccl.AllReduce(ctx, world, with, with, ccl.Max); err != nil {
		return err
	}
	if with[0] != -with[1] {
		return errors.New("some ranks have -timeline and others do not: give it to all of them")
	}
	return nil
}

// draw writes the timeline of all ranks to a file. It is collective.
func draw(ctx context.Context, line *timeline.Timeline, world *ccl.Comm, name string) error {
	if line == nil {
		return nil
	}
	if world.Rank() > 0 {
		return line.Write(ctx, world, io.Discard)
	}
	f, err := files.Create(name)
	if err != nil {
		world.Abort(err)
		return err
	}
	return errors.Join(line.Write(ctx, world, f), f.Close())
}

// unitName is the name of a unit of a model with so many layers.
func unitName(unit, layers int) string {
	switch unit {
	case 0:
		return "embedding"
	case layers + 1:
		return "head"
	}
	return "h." + strconv.Itoa(unit-1)
}

// observed is what a trainer measures of its gradients.
type observed struct {
	norms  *grads.Norms
	noise  *grads.Noise               // nil: there is nothing to compare
	once   func(unit, param int) bool // in a replica this rank counts the parameter
	counts func(unit, param int) bool // and of all ranks this one
	own    float64                    // squares of the gradients of this rank's replica
	list   []history.Metric
}

// observe prepares to measure. o says which parameters count in the norm, and over has the ranks
// that have the same ones.
func (tr *trainer) observe(o *zero.Options, over *ccl.Comm) {
	c := tr.cfg
	if !c.norms {
		return
	}
	var names []string
	for u := range c.Layers + 2 {
		names = append(names, unitName(u, c.Layers))
	}
	tr.seen = &observed{norms: grads.NewNorms(names...)}
	tr.seen.once, tr.seen.counts = o.NormOf, o.NormOf
	if c.stage == 0 && over.Rank() > 0 { // all of them have all
		tr.seen.counts = func(int, int) bool { return false }
	}
	// A replica's own gradients are whole in one place unless they are averaged as they are made.
	if c.dp > 1 && c.across == 1 && !c.held.bf16 && (c.stage < 2 || c.micro == 1) {
		tr.seen.noise = &grads.Noise{Ranks: c.dp, Samples: c.rows / c.dp}
	}
}

// ownGrads takes the gradients of a unit before they are averaged over replicas.
func (tr *trainer) ownGrads(i int, g [][]float32) {
	if tr.seen == nil || tr.seen.noise == nil {
		return
	}
	for j := range g {
		if tr.seen.once(i, j) {
			tr.seen.own += grads.Squares(g[j])
		}
	}
}

// averaged takes gradients that an update gets.
func (tr *trainer) averaged(p zero.Piece, g []float32) {
	if tr.seen != nil && tr.seen.counts(p.Unit, p.Param) {
		tr.seen.norms.Add(tr.units[p.Unit], grads.Squares(g))
	}
}

// metrics are what was measured in the last step, the same on all ranks. It is collective.
func (tr *trainer) metrics(ctx context.Context) ([]history.Metric, error) {
	o, c := tr.seen, tr.cfg
	if o == nil {
		return nil, nil
	}
	norms, err := o.norms.Over(ctx, tr.world)
	if err != nil {
		return nil, err
	}
	back := 1. // what clipping has scaled them by
	if m, ok := tr.model.(interface{ Norm() float64 }); ok && c.clip > 0 {
		back = 1 / optim.ClipFactor(m.Norm(), c.clip)
	}
	o.list = o.list[:0]
	whole := 0.
	for _, m := range norms {
		m.Value *= back
		whole += m.Value * m.Value
		o.list = append(o.list, m)
	}
	if o.noise != nil {
		own := []float64{o.own}
		o.own = 0
		if err := ccl.AllReduce(ctx, tr.world, own, own, ccl.Sum); err != nil {
			return nil, err
		}
		o.noise.Add(own[0]/float64(c.dp)/float64(c.micro*c.micro), whole)
		o.list = append(o.list, history.Metric{Name: "noise", Value: o.noise.Scale()})
	}
	o.list = append(o.list, history.Metric{Name: "norm", Value: math.Sqrt(whole)})
	return o.list, nil
}
