package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/internal/measure"
)

// never is a bound that no call reaches.
const never = math.MaxInt64

// fit is tab with the thresholds that cost least at the points: its entries, in their order, with the same
// algorithms, since points of a few ranks say nothing of those that pay for many. One threshold after another takes
// the best value, until none changes; what gains nothing stays as it is.
func fit(points []*point, tab algo.Table) algo.Table {
	tab = slices.Clone(tab)
	for changed, laps := true, 0; changed && laps < 20; laps++ {
		changed = false
		for i := range tab {
			for _, bound := range []*int64{&tab[i].Bytes, &tab[i].Share} {
				if *bound > 0 && improve(points, tab, i, bound) {
					changed = true
				}
			}
		}
	}
	return tab
}

// gain is the least that a threshold is changed for: the logarithm of a ratio of times, added up over the points.
const gain = 0.05

// improve sets a bound of entry i to the best value, and reports whether that is a new one.
func improve(points []*point, tab algo.Table, i int, bound *int64) bool {
	old := *bound
	best, least := old, cost(points, tab, tab[i].Kind)-gain
	for _, v := range candidates(points, &tab[i], bound == &tab[i].Share) {
		*bound = v
		if c := cost(points, tab, tab[i].Kind); c < least {
			best, least = v, c
		}
	}
	*bound = best
	return best != old
}

// candidates are the thresholds that tell the points of an entry's kind apart.
func candidates(points []*point, e *algo.Entry, share bool) []int64 {
	list := []int64{never}
	for _, p := range points {
		if p.kind == e.Kind {
			v := int64(p.bytes)
			if share {
				v /= int64(p.l.ranks())
			}
			list = append(list, max(v, 1))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// cost is how much longer the calls of kind take by tab than by the fastest algorithm: the sum of the logarithms of
// the ratios, as far as they are beyond doubt.
func cost(points []*point, tab algo.Table, kind op.Kind) float64 {
	sum := 0.0
	for _, p := range points {
		if p.kind != kind {
			continue
		}
		name := algo.Choose(p.kind, int64(p.bytes), p.l.topology(), false, tab)
		if len(p.us[name]) == 0 {
			continue
		}
		if _, low, _ := p.slower(name, p.fastest()); low > 1 {
			sum += math.Log(low)
		}
	}
	return sum
}

// printPoints says which algorithm was the fastest where, and what the present table's takes.
func printPoints(w io.Writer, points []*point) {
	if len(points) == 0 {
		return
	}
	fmt.Fprintf(w, "%-6s %-14s %10s  %-14s %10s  %-14s %6s  %s\n", "layout", "collective", "bytes", "fastest", "us",
		"table", "ratio", "others, times the fastest")
	for _, p := range points {
		best := p.fastest()
		us, _, _ := measure.Median(p.us[best])
		now := algo.Choose(p.kind, int64(p.bytes), p.l.topology(), false, nil)
		ratio, low, _ := p.slower(now, best)
		mark := ""
		if low > 1 {
			mark = " *"
		}
		var others []string
		for _, name := range algo.Names(p.kind) {
			if name != best && name != now && len(p.us[name]) > 0 {
				r, _, _ := p.slower(name, best)
				others = append(others, fmt.Sprintf("%s %.2f", name, r))
			}
		}
		fmt.Fprintf(w, "%-6v %-14v %10d  %-14s %10.2f  %-14s %6.2f%-2s %s\n", p.l, p.kind.Flag(), p.bytes, best, us, now,
			ratio, mark, strings.Join(others, ", "))
	}
	fmt.Fprintln(w, "* slower beyond doubt: the 95 % interval of the ratio lies above 1")
}

// printTables prints the table as the code has it: + are the proposed lines, - those of the present that they replace.
func printTables(w io.Writer, present, proposed algo.Table) {
	fmt.Fprintln(w, "\ninternal/algo/choose.go, defaults:")
	for i := range present {
		was, is := source(&present[i]), source(&proposed[i])
		switch {
		case proposed[i].Bytes == never || proposed[i].Share == never:
			fmt.Fprintf(w, "- %s\n", was)
		case was == is:
			fmt.Fprintf(w, "  %s\n", was)
		default:
			fmt.Fprintf(w, "- %s\n+ %s\n", was, is)
		}
	}
}

var spreadNames = []string{"AnySpread", "OneEach", "Shared"}

// source is e as a line of Go.
func source(e *algo.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{Kind: op.%s", e.Kind)
	if e.Spread != algo.AnySpread {
		fmt.Fprintf(&b, ", Spread: %s", spreadNames[e.Spread])
	}
	for _, bound := range []struct {
		name  string
		value int64
	}{{"Bytes", e.Bytes}, {"Share", e.Share}} {
		if bound.value > 0 {
			fmt.Fprintf(&b, ", %s: %s", bound.name, inKib(bound.value))
		}
	}
	if e.Ranks > 0 {
		fmt.Fprintf(&b, ", Ranks: %d", e.Ranks)
	}
	if e.Pow2 {
		b.WriteString(", Pow2: true")
	}
	fmt.Fprintf(&b, ", Name: %q},", e.Name)
	return b.String()
}

func inKib(v int64) string {
	switch k, r := v/1024, v%1024; {
	case k == 0:
		return fmt.Sprint(v)
	case r == 0:
		return fmt.Sprintf("%d * kib", k)
	default:
		return fmt.Sprintf("%d*kib + %d", k, r)
	}
}
