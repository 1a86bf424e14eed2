package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// lineChange is what became of one half of a line.
type lineChange struct {
	Op, What, Size, Place string
	Old, New              float64 // us, the middle of the runs
	change
}

// lines compares two sides, half line by half line. Each counts as changed by an interval so wide
// that a false alarm in any of them is as rare as for one alone. Changes of up to leeway are none.
func lines(old, new side, leeway float64) (all []lineChange) {
	keys := common(slices.Concat(old.runs, new.runs)...)
	for _, g := range groups(keys) {
		rough := scatter(old.runs[0], new.runs[0], g.keys)
		for _, k := range g.keys {
			logs := func(s side) (x []float64) {
				for _, r := range s.runs {
					x = append(x, r[k])
				}
				return x
			}
			a, b := logs(old), logs(new)
			l := lineChange{Op: k.op, Size: report.SizeOf(k.size), Place: "out of place", Old: math.Exp(stat.Median(a)),
				New:    math.Exp(stat.Median(b)),
				change: between(a, b, together(len(keys)), rough)}
			if l.leeway = leeway; k.inPlace {
				l.Place = "in place"
			}
			for _, word := range []string{k.typ, k.redop, k.backend} {
				if word != "none" && word != "" {
					l.What = strings.TrimSpace(l.What + " " + word)
				}
			}
			if k.root >= 0 {
				l.What += fmt.Sprintf(" root %d", k.root)
			}
			all = append(all, l)
		}
	}
	return all
}

// Ratio is the new time by the old one.
func (l lineChange) Ratio() string { return fmt.Sprintf("%.3g", math.Exp(l.shown.Estimate)) }

// Interval is that of the ratio; where it reaches over three orders of magnitude the runs say nothing.
func (l lineChange) Interval() string {
	if !(l.shown.High-l.shown.Low < math.Log(1000)) {
		return "any"
	}
	return fmt.Sprintf("%.3g to %.3g", math.Exp(l.shown.Low), math.Exp(l.shown.High))
}

// Verdict is what may be said of it.
func (l lineChange) Verdict() string { return l.verdict() }

// The bar of a line in the page, in pixels: the interval of the ratio on a logarithmic scale, with 1 in the middle.
const (
	barWidth = 160
	barMost  = 8 // the ratio at its right end, and its inverse at the left one
)

// Bar is where the ends of the interval and the ratio itself lie in the picture, from 0 to barWidth.
func (l lineChange) Bar() (b struct{ Low, High, At string }) {
	x := func(log float64) float64 {
		part := min(max(log/math.Log(barMost), -1), 1) // of half the picture
		if math.IsNaN(part) {
			part = 0
		}
		return barWidth / 2 * (1 + part)
	}
	b.Low, b.High, b.At = fmt.Sprintf("%.1f", x(l.shown.Low)), fmt.Sprintf("%.1f", x(l.shown.High)),
		fmt.Sprintf("%.1f", x(l.shown.Estimate))
	return b
}

// Times are the two, for people.
func (l lineChange) Times() [2]string {
	return [2]string{fmt.Sprintf("%.4g", l.Old), fmt.Sprintf("%.4g", l.New)}
}

// table writes the lines, each with old, new, ratio and its interval, below a heading for each kind of call.
func table(w io.Writer, all []lineChange) {
	kind := ""
	for _, l := range all {
		if k := l.Op + " " + l.What; k != kind {
			kind = k
			fmt.Fprintf(w, "# %s\n#%9s  %-12s  %10s  %10s  %7s  %18s\n", kind, "size", "", "old (us)", "new (us)", "ratio",
				"95 % interval")
		}
		t := l.Times()
		fmt.Fprintf(w, "%10s  %-12s  %10s  %10s  %7s  %18s  %s\n", l.Size, l.Place, t[0], t[1], l.Ratio(), l.Interval(),
			l.Verdict())
	}
}

//go:embed compare.html
var page string

var pageTemplate = template.Must(template.New("compare").Parse(page))

// html is the page of a comparison: what was said, and the table.
func html(said, old, new string, all []lineChange) func(*report.File, io.Writer) error {
	return func(_ *report.File, w io.Writer) error {
		return pageTemplate.Execute(w, struct {
			Style         template.CSS
			Said          []string
			Old, New      string
			Lines         []lineChange
			Slower, Worse string
			Wide, Most    int
		}{template.CSS(report.Style()), strings.Split(strings.TrimSpace(said), "\n"), old, new, all, slower, "bad",
			barWidth, barMost})
	}
}
