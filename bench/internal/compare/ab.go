package compare

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/goccl/goccl/bench/internal/stat"
)

// The confidence of the interval that is shown, and of the one that decides. The
// second is higher since a false alarm costs somebody a day.
const (
	shown   = 0.95
	decides = 0.99
)

// trial compares two programs by running them in turns.
type trial struct {
	rounds int           // the most
	budget time.Duration // no further round is begun after that
	enough float64       // half an interval as narrow as that ends the trial
	start  func(ctx context.Context, side int) (run, error)
	tell   func(round int, log float64)
	now    func() time.Time
	draw   func(n int) int
}

// leastRounds make an interval at all; below the shortest that is of use.
const leastRounds = 10

// result is what a trial finds; ratios of times are logarithms.
type result struct {
	rounds        int
	shown, decide stat.Interval
	lines         int
}

// run makes the rounds. In each both sides run, in an order drawn anew, so that what
// changes on the machine over time changes for both.
func (t *trial) run(ctx context.Context) (*result, error) {
	begin := t.now()
	var logs []float64
	r := &result{}
	for len(logs) < t.rounds {
		var sides [2]run
		first := t.draw(2)
		for _, side := range []int{first, 1 - first} {
			var err error
			if sides[side], err = t.start(ctx, side); err != nil {
				return nil, err
			}
		}
		keys := common(sides[0], sides[1])
		if len(keys) == 0 {
			return nil, fmt.Errorf("the two have no line in common")
		}
		r.lines = len(keys)
		logs = append(logs, ratio(sides[0], sides[1], keys))
		r.rounds = len(logs)
		t.tell(len(logs), logs[len(logs)-1])
		if len(logs) < leastRounds {
			continue
		}
		r.decide = stat.Shift(logs, decides)
		// How narrow the interval is says nothing about where it is, so stopping for that
		// is no second chance.
		if (r.decide.High-r.decide.Low)/2 < t.enough || t.now().Sub(begin) > t.budget {
			break
		}
	}
	r.shown = stat.Shift(logs, shown)
	return r, nil
}

// verdict is slower, faster or no change.
func (r *result) verdict() string {
	switch {
	case !r.decide.Excludes(0):
		return "no change"
	case r.decide.Estimate > 0:
		return "slower"
	}
	return "faster"
}

// missed reports whether the new one is slower by more than the threshold.
func (r *result) missed(threshold float64) bool {
	return r.verdict() == "slower" && r.shown.Estimate > math.Log1p(threshold)
}

func (r *result) String() string {
	text := fmt.Sprintf("%s: time %s (95 %% interval %s to %s), %d rounds of %d lines", r.verdict(), percent(r.shown.Estimate),
		percent(r.shown.Low), percent(r.shown.High), r.rounds, r.lines)
	if r.verdict() == "no change" {
		text += fmt.Sprintf("; less than %.1f %% could not be told", 100*math.Expm1((r.decide.High-r.decide.Low)/2))
	}
	return text
}
