package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
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
	leeway float64       // changes of up to that much are none: -threshold
	start  func(ctx context.Context, side int) (run, error)
	tell   func(round int, log float64)
	now    func() time.Time
	draw   func(n int) int
}

// leastRounds make an interval at all; below the shortest that is of use.
const leastRounds = 10

// result is what a trial finds; ratios of times are logarithms.
type result struct {
	rounds int
	lines  int
	all    stat.Interval // of all lines together, as it is shown
	parts  []*part
}

// part is what a trial finds of one group of lines. A change need not concern all sizes.
type part struct {
	change
	logs []float64 // by round
}

// run makes the rounds. In each both sides run, in an order drawn anew, so that what
// changes on the machine over time changes for both.
func (t *trial) run(ctx context.Context) (*result, error) {
	begin := t.now()
	var logs []float64
	r := &result{}
	for r.rounds < t.rounds {
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
		r.rounds++
		r.lines = len(keys)
		logs = append(logs, ratio(sides[0], sides[1], keys))
		r.add(sides, keys, t.leeway)
		t.tell(r.rounds, logs[len(logs)-1])
		// How narrow the intervals are says nothing about where they are, so stopping for
		// that is no second chance.
		if r.rounds >= leastRounds && (r.decided() < t.enough || t.now().Sub(begin) > t.budget) {
			break
		}
	}
	r.all = stat.Shift(logs, shown)
	for _, p := range r.parts {
		p.shown = stat.Shift(p.logs, shown)
	}
	return r, nil
}

// add notes one round.
func (r *result) add(sides [2]run, keys []key, leeway float64) {
	for _, g := range groups(keys) {
		i := slices.IndexFunc(r.parts, func(p *part) bool { return p.name == g.name })
		if i < 0 {
			i = len(r.parts)
			r.parts = append(r.parts, &part{change: change{group: g, leeway: leeway, apart: true}})
		}
		r.parts[i].logs = append(r.parts[i].logs, ratio(sides[0], sides[1], g.keys))
	}
}

// decided sets the intervals that decide, and returns half of the widest. With many
// groups each needs more confidence (Bonferroni), so that a false alarm in any of
// them stays as rare.
func (r *result) decided() (half float64) {
	for _, p := range r.parts {
		p.decide = stat.Shift(p.logs, r.confidence())
		half = max(half, p.least())
	}
	return half
}

// confidence is that of the intervals which decide.
func (r *result) confidence() float64 { return 1 - (1-decides)/float64(len(r.parts)) }

// The verdicts.
const (
	noChange   = "no change" // beyond the threshold
	cannotTell = "cannot tell"
	slower     = "slower"
	faster     = "faster"
	mixed      = "slower and faster"
)

// verdict is that of the groups which have changed; if none has, that of those of which nothing can be told.
func (r *result) verdict() string {
	has := map[string]bool{}
	for _, p := range r.parts {
		has[p.verdict()] = true
	}
	if has[slower] && has[faster] {
		return mixed
	}
	for _, v := range []string{slower, faster, cannotTell} {
		if has[v] {
			return v
		}
	}
	return noChange
}

// outcome is what a script wants to know of the result.
func (r *result) outcome() (o outcome) {
	for _, p := range r.parts {
		o.add(p.change)
	}
	return o
}

// String is a line for each group, where there are several, and one for all.
func (r *result) String() string {
	text, widest := "", 0.0
	for _, p := range r.parts {
		widest = max(widest, p.least())
		if len(r.parts) > 1 {
			text += strings.TrimSuffix(p.String(), "\n") + p.untold(r.confidence()) + "\n"
		}
	}
	text += fmt.Sprintf("%s: %s, %d rounds of %d lines", r.verdict(), span(r.all), r.rounds, r.lines)
	if len(r.parts) == 1 {
		text += r.parts[0].untold(r.confidence())
	}
	if v := r.verdict(); v == noChange || v == cannotTell {
		text += fmt.Sprintf("; less than %.1f %% could not be detected", 100*math.Expm1(widest))
	}
	return text
}

// span writes an estimate with its interval.
func span(i stat.Interval) string {
	return fmt.Sprintf("time %s (95 %% interval %s to %s)", percent(i.Estimate), percent(i.Low), percent(i.High))
}
