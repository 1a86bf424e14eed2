package harness

import (
	"time"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
	"github.com/goccl/goccl/ccl"
)

// iterations is what the pass has found in which each iteration is timed by itself,
// after a barrier.
type iterations struct {
	mean  float64 // this rank's, microseconds per call
	late  float64 // how long after the first rank this one comes to the barrier, in the middle iteration
	stats *report.PerIter
}

// mostKept is how many times of all ranks are brought together for one half of a line.
const mostKept = 1 << 20

// iterate times n iterations one by one. A rank that comes late to the barrier before
// one waits there for less time than the others: this tells how late it was, without
// clocks that agree.
func (t *test[T]) iterate(n int) (*iterations, error) {
	s := t.s
	times, waits := make([]float64, n), make([]float64, n)
	for i := range n {
		st := t.nextBuffers()
		if err := t.captureOne(st); err != nil {
			return nil, err
		}
		flush(s.sweep)
		arrive := time.Now()
		if err := ccl.Barrier(t.ctx, s.world); err != nil {
			return nil, err
		}
		start := time.Now()
		took, err := t.once(st)
		if err != nil {
			return nil, err
		}
		times[i] = took.Seconds() * 1e6 / float64(t.calls())
		waits[i] = start.Sub(arrive).Seconds() * 1e6
	}
	it := &iterations{mean: stat.Of(times).Avg}
	counted := times // of groups that differ in size, those of rank 0's kind
	if !s.groups.alike(s.world.Rank()) {
		counted = make([]float64, n)
	}
	slowest, longest, shortest := make([]float64, n), make([]float64, n), make([]float64, n)
	for _, r := range []struct {
		dst, src []float64
		op       ccl.Op
	}{{slowest, counted, ccl.Max}, {longest, waits, ccl.Max}, {shortest, waits, ccl.Min}} {
		if err := ccl.AllReduce(t.ctx, s.world, r.dst, r.src, r.op); err != nil {
			return nil, err
		}
	}
	late, skew := make([]float64, n), make([]float64, n)
	for i := range n {
		late[i], skew[i] = longest[i]-waits[i], longest[i]-shortest[i]
	}
	it.late = stat.Median(late)
	all, err := t.ofRanks(times)
	if err != nil || !s.o.Individually() {
		return it, err
	}
	skip := min(s.o.Skip, n-1)
	it.stats = report.NewPerIter(slowest, all, stat.Median(skew), skip)
	if s.o.Soak > 0 || s.o.Cycles != 1 {
		it.stats.Times = nil // for ever is too much to keep
	}
	return it, nil
}

// ofRanks is every rank's times, on rank 0, where a file wants them and they are not
// too many.
func (t *test[T]) ofRanks(times []float64) ([][]float64, error) {
	s := t.s
	if s.o.JSON == "" && s.o.HTML == "" || s.o.Soak > 0 || s.o.Cycles != 1 ||
		mulOver(len(times), s.world.Size()) > mostKept {
		return nil, nil
	}
	var flat []float64
	if s.world.Rank() == 0 {
		flat = make([]float64, len(times)*s.world.Size())
	}
	if err := ccl.Gather(t.ctx, s.world, flat, times, 0); err != nil {
		return nil, err
	}
	var all [][]float64
	for n := len(times); len(flat) > 0; flat = flat[n:] {
		all = append(all, flat[:n:n])
	}
	return all, nil
}
