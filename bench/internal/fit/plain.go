package fit

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// Plain is what can be said of a curve without knowing its messages, such as that of calls over shared memory: latency
// and bandwidth of whole calls, for each range of sizes. It says nothing of other numbers of ranks.
type Plain struct {
	Op     string
	Ranks  int
	Hosts  int
	How    []string // by which ways the calls went
	Ranges []Range
}

// Range is where calls take latency + size / bandwidth.
type Range struct {
	From, To int // bytes, both included
	line
	Points   int
	Typical  float64 // the median of how far a measurement is from that, relatively
	Farthest float64 // the greatest
}

// whole is the shape of a call that is taken as one message.
var whole = Shape{1, 1, 1}

// PlainOf fits the curve of one operation in a run.
func PlainOf(f *report.File, op string) (*Plain, error) {
	p := &Plain{Op: op, Ranks: cmp.Or(f.Config.GroupRanks, f.Config.Ranks), Hosts: cmp.Or(f.Config.GroupHosts, max(f.Config.Hosts, 1))}
	var points []Point
	for _, r := range f.Results {
		if r.Op != op {
			continue
		}
		if !slices.Contains(p.How, r.Algorithm) && r.Algorithm != "" {
			p.How = append(p.How, r.Algorithm)
		}
		for _, us := range halves(&r) {
			points = append(points, Point{float64(r.Size), us, r.Algorithm, whole})
		}
	}
	if len(points) < fewest {
		return nil, fmt.Errorf("%s: %d measurements are too few; measure at least %d sizes", op, len(points), fewest)
	}
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Size, b.Size) })
	if p.Ranges = ranges(points); p.Ranges == nil {
		return nil, fmt.Errorf("%s: %w", op, errLine)
	}
	return p, nil
}

// halves are the times of both halves of a row, the median iteration's where there is one.
func halves(r *report.Row) (us []float64) {
	for _, half := range r.Halves() {
		if t := half.Typical(); t > 0 {
			us = append(us, t)
		}
	}
	return us
}

// ranges splits points, which are in order of their sizes, where two lines explain them so much better than one that it is
// worth the parameters; nil if no line fits.
func ranges(points []Point) (parts []Range) {
	one, err := regress(points)
	best := math.Inf(1)
	if err == nil {
		best, parts = information(one.misfit, len(points), 2), []Range{rangeOf(points, one)}
	}
	if at, _, _ := split(points, best, 4); at > 0 {
		return append(ranges(points[:at]), ranges(points[at:])...)
	}
	return parts
}

// sizes is how many different ones points have; of two measurements at each of two sizes any line is a good one.
func sizes(points []Point) (n int) {
	for i, p := range points {
		if i == 0 || p.Size != points[i-1].Size {
			n++
		}
	}
	return n
}

// rangeOf describes how well l explains points.
func rangeOf(points []Point, l line) Range {
	r := Range{From: int(points[0].Size), To: int(points[len(points)-1].Size), line: l, Points: len(points)}
	var off []float64
	for _, p := range points {
		off = append(off, math.Abs(1-(l.alpha.Estimate+p.Size*l.beta.Estimate)/p.Time))
	}
	r.Typical, r.Farthest = stat.Median(off), slices.Max(off)
	return r
}

// write says what was found, and what it is not.
func (p *Plain) write(w io.Writer) {
	fmt.Fprintf(w, "# %s on %d ranks of %s: PLAIN FIT of whole calls, time = latency + size / bandwidth, as no messages are known\n", p.Op, p.Ranks, prose.Count(p.Hosts, "host"))
	fmt.Fprintf(w, "# It holds for these ranks here. To extrapolate, measure between hosts (-hosts 2, or several machines).\n")
	fmt.Fprintf(w, "# %8s  %8s  %12s  %26s  %16s  %18s\n", "from", "to", "latency (us)", "bandwidth (GB/s)", "residual (%)", "the greatest (%)")
	for _, r := range p.Ranges {
		fmt.Fprintf(w, "  %8s  %8s  %12.4g  %26s  %16.1f  %18.1f\n", option.FormatSize(r.From), option.FormatSize(r.To), r.alpha.Estimate, speed(r.line), 100*r.Typical, 100*r.Farthest)
	}
}

// speed is a line's bandwidth, or that the sizes of its range make no difference.
func speed(l line) string {
	if l.beta.Low <= 0 {
		return "not visible here"
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g)", 1/l.beta.Estimate/1e3, 1/l.beta.High/1e3, 1/l.beta.Low/1e3)
}
