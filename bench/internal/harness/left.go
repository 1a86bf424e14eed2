package harness

import (
	"slices"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/progress"
	"github.com/goccl/goccl/bench/internal/report"
)

// newClock starts the estimate of the time left, where a screen shows it and where the
// end is known.
func (s *session) newClock() {
	if s.out == nil || !s.out.terminal || s.o.Plan != "" || s.o.Soak > 0 || s.o.Cycles == 0 || len(s.o.Types) == 0 {
		return
	}
	s.out.clock = progress.New(s.curves()*s.o.Cycles, s.o.Sizes(s.o.Types[0].Size()), s.atLeast, s.o.Long())
}

// curves is how many there will be in one cycle, if the engine supports all.
func (s *session) curves() (n int) {
	for _, c := range coll.All[float32]() {
		if !slices.Contains(s.o.Collectives, c.Name) {
			continue
		}
		each := len(s.o.Types)
		if c.NoData {
			each = 1
		}
		if c.Reduces {
			each *= len(s.o.Ops)
		}
		if c.Rooted && s.o.Root == option.AllRoots {
			each *= s.ranks()
		}
		n += each
	}
	return n
}

// atLeast is how many calls half a line of that many bytes is timed over at least.
func (s *session) atLeast(bytes int) int {
	if s.o.Long() > 0 {
		return s.o.Iters
	}
	return s.o.Timed(bytes)
}

// measured notes what the i-th line of a curve took, and what its rows say of a call.
func (o *output) measured(i int, took time.Duration, rows []*report.Row) {
	if o != nil && o.clock != nil {
		call := 0.0 // us; the halves of all rows are timed one after the other
		for _, r := range rows {
			call += (r.OutOfPlace.Time + r.InPlace.Time) / 2
		}
		o.clock.Measured(i, took, time.Duration(call*1e3))
	}
}

// left is the time left before the i-th line of a curve, as text after others.
func (o *output) left(i int) string {
	if o == nil || o.clock == nil {
		return ""
	}
	if text := progress.Text(o.clock.Left(i)); text != "" {
		return ", " + text + " left"
	}
	return ""
}
