package compare

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// launches is how far apart two launches of one program are taken to be at least where
// there is but one on a side: the standard deviation of the logarithm of the times.
// People see factors of two between runs that nothing distinguishes
// (NVIDIA/nccl-tests#104). A machine on which the lines of two runs scatter does
// worse: that is added.
const launches = 0.15

// side is the runs of one side.
type side struct {
	files []*report.File
	runs  []run
}

func newSide(files []*report.File) side {
	s := side{files: files}
	for _, f := range files {
		s.runs = append(s.runs, runOf(f))
	}
	return s
}

// group is lines that are compared together: of one operation, in one range of sizes.
type group struct {
	name string
	keys []key
}

// groups splits lines into small sizes, which latency decides, large sizes, which bandwidth decides, and
// the sizes between.
func groups(keys []key) []group {
	var gs []group
	for _, k := range keys {
		name := k.op + " up to 4 KiB"
		switch {
		case k.size >= 1<<20:
			name = k.op + " from 1 MiB on"
		case k.size > 4<<10:
			name = k.op + " in between"
		}
		if k.backend != "" {
			name += " (" + k.backend + ")"
		}
		i := slices.IndexFunc(gs, func(g group) bool { return g.name == name })
		if i < 0 {
			i = len(gs)
			gs = append(gs, group{name: name})
		}
		gs[i].keys = append(gs[i].keys, k)
	}
	return gs
}

// change is what became of a group: intervals of the logarithm of the ratio of times.
type change struct {
	group
	leeway        float64 // changes of up to that much are none: -threshold
	shown, decide stat.Interval
	apart         bool // by the ranks of the runs, too
}

// least is the smallest change that these runs can tell.
func (c change) least() float64 { return (c.decide.High - c.decide.Low) / 2 }

func (c change) String() string {
	return fmt.Sprintf("%s: %s: %s, %d lines\n", c.name, c.verdict(), span(c.shown), len(c.keys))
}

// untold says by which interval nothing is told, "" if something is: one that is shown may exclude 0 all the same.
func (c change) untold(confidence float64) string {
	if c.told() || !c.shown.Excludes(0) {
		return ""
	}
	return fmt.Sprintf("; what decides is the %.4g %% interval, %s to %s", 100*confidence, percent(c.decide.Low),
		percent(c.decide.High))
}

// told reports whether the runs tell a change.
func (c change) told() bool { return c.decide.Excludes(0) && c.apart }

// verdict is what may be said of it.
func (c change) verdict() string {
	limit := math.Log1p(c.leeway)
	switch {
	case c.told() && c.decide.Estimate > 0:
		return slower
	case c.told():
		return faster
	case -limit <= c.decide.Low && c.decide.High <= limit:
		return noChange
	}
	return cannotTell
}

// together is the confidence that each of n groups needs, so that a false alarm in any of them stays as rare
// as shown has it for one (Bonferroni).
func together(n int) float64 { return 1 - (1-shown)/float64(n) }

// changes compares two sides, group by group. Swapping the sides swaps the verdicts: each run is taken by
// its distance from the mean of all.
func changes(old, new side, leeway float64) ([]change, error) {
	keys := common(slices.Concat(old.runs, new.runs)...)
	if len(keys) == 0 {
		return nil, fmt.Errorf("the runs have no line in common: operation, type, operator, root, size and backend must be the same")
	}
	gs := groups(keys)
	middle := run{}
	for _, k := range keys {
		middle[k] = (sum(old.runs, k) + sum(new.runs, k)) / float64(len(old.runs)+len(new.runs))
	}
	var cs []change
	for _, g := range gs {
		level := func(s side) (logs []float64) {
			for _, r := range s.runs {
				logs = append(logs, ratio(middle, r, g.keys))
			}
			return logs
		}
		c := between(level(old), level(new), together(len(gs)), scatter(old.runs[0], new.runs[0], g.keys))
		c.group, c.leeway = g, leeway
		cs = append(cs, c)
	}
	return cs, nil
}

// between compares the levels of two sides' runs. scatter is that of the lines, which counts where a side has one run.
func between(a, b []float64, decides, scatter float64) change {
	interval := func(confidence float64) stat.Interval {
		d := stat.Student(a, b, confidence)
		if len(a) == 1 || len(b) == 1 {
			half := stat.T(math.Inf(1), confidence) * math.Hypot(launches, scatter) *
				math.Sqrt(1/float64(len(a))+1/float64(len(b)))
			d.Low, d.High = d.Estimate-half, d.Estimate+half
		}
		return d
	}
	c := change{shown: interval(shown), decide: interval(decides), apart: true}
	if n := min(len(a), len(b)); n > 1 && n < few {
		c.apart = stat.Separate(a, b) <= max(rare, stat.LeastSeparate(len(a), len(b)))
	}
	return c
}

// Student's interval of few runs may hang on one of them, which is much slower than all others. So where a side
// has fewer than few the two must be apart by their ranks, too, as rarely as chance has it or more so.
const (
	few  = 5
	rare = 0.1
)

func sum(runs []run, k key) (x float64) {
	for _, r := range runs {
		x += r[k]
	}
	return x
}

// scatter is how differently the lines have changed: a change of all is one, a change
// of each is noise.
func scatter(old, new run, keys []key) float64 {
	middle := ratio(old, new, keys)
	var d []float64
	for _, k := range keys {
		d = append(d, math.Abs(new[k]-old[k]-middle))
	}
	return 1.4826 * stat.Median(d) // the standard deviation, were they normal
}

// outcome is what a script wants to know.
type outcome struct {
	worse   bool // something is slower by more than the threshold
	unclear bool // of something the runs cannot tell whether it is
}

func (o *outcome) add(c change) {
	v := c.verdict()
	o.worse = o.worse || v == slower && c.shown.Estimate > math.Log1p(c.leeway)
	o.unclear = o.unclear || v == cannotTell
}

// status is the exit status.
func (o outcome) status(strict bool) int {
	switch {
	case o.worse:
		return option.Missed
	case o.unclear && strict:
		return option.Unclear
	}
	return option.Good
}

// write says what has changed, and if nothing has, what could have been told.
func write(w io.Writer, old, new side, threshold float64, differs []string) (o outcome, err error) {
	cs, err := changes(old, new, threshold)
	if err != nil {
		return o, err
	}
	of, least := map[string]int{}, 0.0
	for _, c := range cs {
		of[c.verdict()]++
		least = max(least, c.least())
		o.add(c)
	}
	told := of[slower] + of[faster]
	if told > 0 {
		for _, d := range differs {
			fmt.Fprintln(w, "differs:", d)
		}
	} else {
		all := noChange
		if o.unclear {
			all = cannotTell
		}
		why := ""
		if len(old.runs) == 1 || len(new.runs) == 1 {
			why = "; one run says little, because launches differ: give several for each side, such as old1.json,old2.json,old3.json"
		}
		fmt.Fprintf(w, "%s; the smallest change that %s can detect is %s %%%s\n", all,
			prose.Count(len(old.runs), "run")+" against "+prose.Count(len(new.runs), "run"), short(100*math.Expm1(least)), why)
	}
	if len(of) > 1 || told > 0 {
		for _, c := range cs {
			io.WriteString(w, c.String())
		}
	}
	if told > 0 && len(cs) > 1 {
		fmt.Fprintf(w, "a group counts as changed by its %.4g %% interval, which gives 95 %% for all %d groups together (Bonferroni)\n", 100*together(len(cs)), len(cs))
	}
	return o, nil
}

// short writes a percentage with two digits or more.
func short(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.0f", x)
}
