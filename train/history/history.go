// Package history records the metrics of a run: for each step the mean, minimum, maximum and standard deviation over
// all ranks, as text, as JSON lines, as TensorBoard's events, as plots and as a table. It is ezpz's History.
//
//	h, err := history.New(ctx, c, &history.Options{Out: os.Stdout, JSON: file})
//	for step := range steps {
//		...
//		err = h.Log(ctx, step, history.Metric{Name: "loss", Value: loss}, history.Metric{Name: "dt", Value: dt.Seconds()})
//	}
//	err = h.Err() // of the last step
//
// Names are free. Those that training programs share are these; times are in seconds:
//
//	loss  the mean loss per token          dtc  time in communication, hidden or not
//	dt    the whole step                   dtx  of that what the step waited for: exposed
//	dtf   forward                          tps  tokens per second, of all ranks
//	dtb   backward                         mfu  per cent of the processors' peak: see [MFU]
//	dto   the optimizer
//
// A Log makes two all-reduces of 2m+3 numbers in one group for m metrics, whatever the number of ranks, and keeps 40
// bytes a metric.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/history/events"
	"github.com/goccl/goccl/train/internal/same"
)

// Metric is one named value of this rank.
type Metric struct {
	Name  string
	Value float64
}

// Stat is a metric over the ranks. All four are NaN where a rank's value is. Std is that of the ranks as a population,
// and exactly 0 if all have the same value.
type Stat struct{ Mean, Min, Max, Std float64 }

// Options are where the lines go. Only rank 0 writes.
type Options struct {
	// Out gets a line a step with the means: "step=10 loss=2.31 dt=0.283 dtf=0.1 dtb=0.15 dtc=0.02 tps=926851".
	Out io.Writer
	// JSON gets an object a step: {"step":10,"loss":{"mean":2.31,"min":2.3,"max":2.32,"std":0.01}}. A number that JSON
	// does not have is a string: "NaN", "Inf" or "-Inf".
	JSON io.Writer
	// Events gets TensorBoard's events, as events.Create opens a file for them: each mean under the metric's name, and
	// of several ranks NAME/min and NAME/max.
	Events io.Writer
	// MaxRanks is the most ranks that are looked at. Where there are more, a rank records its own values only, and those
	// of rank 0 are written. Default 384.
	MaxRanks int
}

const defaultMaxRanks = 384

// History is the metrics of a run. All ranks of a Comm have one, and all can read it. It is used by one goroutine at a
// time.
type History struct {
	c       *ccl.Comm
	o       Options
	names   []string // in the order they came
	series  map[string]*series
	failed  error // of writing, on rank 0
	events  *events.Writer
	sum     []float64
	most    []float64
	line    []byte
	scalars []events.Scalar
}

// series is a metric over the steps.
type series struct {
	steps []int
	stats []Stat
}

// New returns an empty History for the ranks of c. It is collective.
func New(ctx context.Context, c *ccl.Comm, o *Options) (*History, error) {
	h := &History{c: c, series: map[string]*series{}}
	if o != nil {
		h.o = *o
	}
	var bad error
	if h.o.MaxRanks < 0 {
		bad = fmt.Errorf("MaxRanks is %d", h.o.MaxRanks)
	}
	h.o.MaxRanks = cmp.Or(h.o.MaxRanks, defaultMaxRanks)
	if h.o.Events != nil {
		h.events = events.New(h.o.Events)
	}
	if err := same.Args(ctx, c, "history", bad, fmt.Sprintf("MaxRanks %d", h.o.MaxRanks)); err != nil {
		return nil, err
	}
	return h, nil
}

// Log records the metrics of a step. It is collective: all ranks pass the same step, and the same names in the same
// order. Names or steps that differ are an error on all ranks, which names them, and nothing is recorded; a different
// number of metrics fails the Comm with ErrMismatch.
//
// If rank 0 cannot write, all ranks hear it from the next Log. Err tells rank 0 at once: ask it
// behind the last Log, or a file that lacks the last step passes for whole.
//
// A step that was logged before replaces what was recorded for it, and no other: a run that goes back to an earlier
// checkpoint calls Rewind.
func (h *History) Log(ctx context.Context, step int, m ...Metric) error {
	stats := make([]Stat, len(m))
	if h.c.Size() > h.o.MaxRanks {
		for i, x := range m {
			stats[i] = Stat{Mean: x.Value, Min: x.Value, Max: x.Value}
			if math.IsNaN(x.Value) {
				stats[i].Std = x.Value
			}
		}
		if h.failed != nil {
			return h.failed
		}
	} else if err := h.overRanks(ctx, step, m, stats); err != nil {
		return err
	}
	return h.keep(step, m, stats)
}

// keep records and writes a step.
func (h *History) keep(step int, m []Metric, stats []Stat) error {
	for i, x := range m {
		if slices.ContainsFunc(m[:i], func(y Metric) bool { return y.Name == x.Name }) || x.Name == "" || x.Name == stepKey {
			return fmt.Errorf("history: step %d has a metric %q: a name must be unique, not empty and not %q", step, x.Name,
				stepKey)
		}
	}
	for i, x := range m {
		h.add(x.Name, step, stats[i])
	}
	if h.c.Rank() == 0 {
		h.write(step, m, stats)
	}
	return nil
}

// add records a Stat among those of other steps, in order.
func (h *History) add(name string, step int, s Stat) {
	r := h.series[name]
	if r == nil {
		r = &series{}
		h.series[name] = r
		h.names = append(h.names, name)
	}
	at, found := slices.BinarySearch(r.steps, step)
	if found {
		r.stats[at] = s
		return
	}
	r.steps, r.stats = slices.Insert(r.steps, at, step), slices.Insert(r.stats, at, s)
}

// Rewind forgets what was recorded for the steps after step: the run goes on from there, as from a
// checkpoint. All ranks call it alike. What was written stays; Read leaves it out as well, and so
// does TensorBoard. A new History of a run that goes on in the same directory of events calls it
// first.
func (h *History) Rewind(step int) {
	if h.events != nil && h.c.Rank() == 0 {
		h.fail(step, h.events.Restart(time.Now(), step+1))
	}
	for name, r := range h.series {
		if r.cut(step + 1); len(r.steps) == 0 { // a series has at least one step
			delete(h.series, name)
		}
	}
	h.names = slices.DeleteFunc(h.names, func(name string) bool { return h.series[name] == nil })
}

// cut drops the steps from step on.
func (r *series) cut(step int) {
	at, _ := slices.BinarySearch(r.steps, step)
	r.steps, r.stats = r.steps[:at], r.stats[:at]
}

// overRanks computes the stats of m.
//
// What the ranks sum is each value's difference from the mean of the step before, and its square: with the values
// themselves a deviation of less than 1e-8 of the mean would be lost in the rounding.
func (h *History) overRanks(ctx context.Context, step int, m []Metric, stats []Stat) error {
	h.sum, h.most = h.sum[:0], h.most[:0]
	for _, x := range m {
		d := x.Value - h.shift(x.Name)
		h.sum = append(h.sum, d, d*d)
		h.most = append(h.most, x.Value, -x.Value)
	}
	// The ranks differ in what they log if the greatest of these is not the least.
	id := identity(step, m)
	fault := 0.
	if h.failed != nil {
		fault = 1
	}
	h.most = append(h.most, id, -id, fault)
	err := h.c.On(nil).Group(func(q ccl.Queue) error {
		q.AllReduce(ccl.BufOf(h.sum), ccl.InPlace(), ccl.Sum)
		q.AllReduce(ccl.BufOf(h.most), ccl.InPlace(), ccl.Max)
		return nil
	}).Wait(ctx)
	if err != nil {
		h.sum, h.most = nil, nil // which the calls may use for longer, if it is ctx that has ended
		return fmt.Errorf("history: %w", err)
	}
	last := h.most[2*len(m):]
	if last[0] != -last[1] || last[2] != 0 {
		items := []string{fmt.Sprintf("step %d", step)}
		for _, x := range m {
			items = append(items, fmt.Sprintf("%q", x.Name))
		}
		if err := same.Args(ctx, h.c, "history", h.failed, items...); err != nil {
			return err
		}
	}
	n := float64(h.c.Size())
	var large []int // metrics whose squares are too large to be summed
	for i, x := range m {
		s := Stat{Min: -h.most[2*i+1], Max: h.most[2*i]}
		if d := h.sum[2*i] / n; s.Min == s.Max {
			s.Mean = s.Min
		} else {
			s.Mean = d + h.shift(x.Name)
			s.Std = math.Sqrt(max(0, h.sum[2*i+1]/n-d*d))
		}
		if math.IsNaN(s.Min) {
			s = Stat{s.Min, s.Min, s.Min, s.Min}
		}
		if finite(s.Min) && finite(s.Max) && !(finite(s.Std) && finite(s.Mean)) {
			large = append(large, i)
		}
		stats[i] = s
	}
	return h.ofLarge(ctx, m, stats, large)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// ofLarge computes the mean and deviation of some metrics by where their values lie between the
// least and the greatest, from 0 to 1: their squares are too large. All ranks have the same sums,
// so all do this or none.
func (h *History) ofLarge(ctx context.Context, m []Metric, stats []Stat, which []int) error {
	if which == nil {
		return nil
	}
	sum := make([]float64, 0, 2*len(which))
	half := func(s Stat) float64 { return s.Max/2 - s.Min/2 } // the whole may be too large
	for _, i := range which {
		y := (m[i].Value/2 - stats[i].Min/2) / half(stats[i])
		sum = append(sum, y, y*y)
	}
	if err := ccl.AllReduce(ctx, h.c, sum, sum, ccl.Sum); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	n := float64(h.c.Size())
	for k, i := range which {
		s, y := &stats[i], sum[2*k]/n
		s.Mean = s.Min*(1-y) + s.Max*y
		s.Std = half(*s) * (2 * math.Sqrt(max(0, sum[2*k+1]/n-y*y)))
	}
	return nil
}

// shift is the last mean of a metric, which all ranks know.
func (h *History) shift(name string) float64 {
	r := h.series[name]
	if r == nil || len(r.stats) == 0 {
		return 0
	}
	if last := r.stats[len(r.stats)-1].Mean; finite(last) {
		return last
	}
	return 0
}

// identity is a number, exact in a float64, that stands for a step and names.
func identity(step int, m []Metric) float64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d", step)
	for _, x := range m {
		fmt.Fprintf(sum, ",%d:%s", len(x.Name), x.Name)
	}
	return float64(sum.Sum64() >> 12)
}

// Err is why rank 0 could not write; nil on other ranks.
func (h *History) Err() error { return h.failed }

// Names are the metrics, in the order in which they were first logged.
func (h *History) Names() []string { return slices.Clone(h.names) }

// Series yields the steps of a metric and its values over the ranks, in order; nothing if there is no such metric.
func (h *History) Series(name string) iter.Seq2[int, Stat] {
	return func(yield func(int, Stat) bool) {
		r := h.series[name]
		if r == nil {
			return
		}
		for i, step := range r.steps {
			if !yield(step, r.stats[i]) {
				return
			}
		}
	}
}

// FlopsPerToken is the floating-point operations of training a transformer on one token, forward and backward: 6N +
// 12*layers*width*context (PaLM, Chowdhery et al. 2022, appendix B). params is N, without the embeddings that are only
// looked up.
func FlopsPerToken(params, layers, width, context int) float64 {
	return 6*float64(params) + 12*float64(layers)*float64(width)*float64(context)
}

// MFU is model FLOPs utilization in per cent (PaLM, as above): the share of the peak that goes into the model. tps is
// tokens per second of all ranks, peak the floating-point operations per second of all their processors.
func MFU(tps, flopsPerToken, peak float64) float64 { return 100 * tps * flopsPerToken / peak }

var errNoMetric = errors.New("no such metric")
