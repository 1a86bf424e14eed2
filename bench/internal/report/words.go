package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goccl/goccl/bench/internal/prose"
)

// Word is one remark about a run.
type Word struct {
	Text string
	Bad  bool
}

// Words say what stands out in f, the worst first.
func (f *File) Words() (words []Word) {
	bad := func(format string, args ...any) { words = append(words, Word{fmt.Sprintf(format, args...), true}) }
	good := func(format string, args ...any) { words = append(words, Word{fmt.Sprintf(format, args...), false}) }
	for _, e := range f.Errors[:min(len(f.Errors), 5)] {
		bad("%s", e)
	}
	for _, l := range f.Limits {
		bad("Missed: %s", l)
	}
	if len(f.Errors) == 0 && f.OutOfBounds.OK {
		good("All checked results are correct.")
	}
	var odd []oddity
	for _, c := range f.curves() {
		for _, l := range f.lanes(c) {
			title := c.title()
			if l.name != "" {
				title += " (" + l.name + ")"
			}
			if text := f.most(title, l.rows); text != "" {
				good("%s", text)
			}
			odd = append(odd, oddities(title, l.rows)...)
		}
	}
	slices.SortStableFunc(odd, func(a, b oddity) int { return cmp.Compare(b.ratio, a.ratio) })
	for _, o := range odd[:min(len(odd), mostOdd)] {
		bad("%s", o.text)
	}
	if more := len(odd) - mostOdd; more > 0 {
		bad("And %s of that kind: see the curves.", prose.Count(more, "more remark"))
	}
	for _, s := range f.stragglers() {
		bad("%s", s)
	}
	if text := f.BelowMean(); text != "" {
		bad("%s.", sentence(text))
	}
	if s := f.Step; s != nil {
		good("A step of %s with %s takes %.4g ms for its %d calls of %.4g MB in all.", s.Model, s.Scheme, s.Time/1e3, s.Calls, float64(s.Bytes)/1e6)
	}
	if len(f.Skipped) > 0 {
		good("Not supported and left out: %d combinations.", len(f.Skipped))
	}
	return words
}

// most is what a lane reaches.
func (f *File) most(title string, rows []Row) string {
	best, least := (*Row)(nil), rows[0].OutOfPlace.Time
	for i := range rows {
		r := &rows[i]
		if r.OutOfPlace.BusBW != nil && (best == nil || *r.OutOfPlace.BusBW > *best.OutOfPlace.BusBW) {
			best = r
		}
		least = min(least, r.OutOfPlace.Time)
	}
	if best == nil || best.Size == 0 {
		return ""
	}
	share := ""
	if c := f.Config.Ceiling; c != nil && *best.OutOfPlace.BusBW <= c.Bandwidth {
		share = fmt.Sprintf(", %.0f %% of the ceiling", 100**best.OutOfPlace.BusBW/c.Bandwidth)
	}
	return fmt.Sprintf("%s: the most is %.4g GB/s at %s%s; the shortest call takes %s.", title, *best.OutOfPlace.BusBW, sizeOf(float64(best.Size)), share, micros(least))
}

// oddity is where a lane is not what one would expect, and by how much.
type oddity struct {
	ratio float64
	text  string
}

// mostOdd are told.
const mostOdd = 8

func oddities(title string, rows []Row) (odd []oddity) {
	// Sizes that are slower than a larger one: an algorithm is chosen too late or too early.
	var slow []oddity
	for i := range rows[1:] {
		a, b := &rows[i], &rows[i+1]
		if b.Size > a.Size && a.OutOfPlace.Time > 1.3*b.OutOfPlace.Time+2 {
			slow = append(slow, oddity{a.OutOfPlace.Time / b.OutOfPlace.Time, fmt.Sprintf("%s takes %s, longer than %s (%s)",
				sizeOf(float64(a.Size)), micros(a.OutOfPlace.Time), sizeOf(float64(b.Size)), micros(b.OutOfPlace.Time))})
		}
	}
	if n := len(slow); n > 0 {
		worst := slices.MaxFunc(slow, func(a, b oddity) int { return cmp.Compare(a.ratio, b.ratio) })
		text := fmt.Sprintf("%s: %s.", title, worst.text)
		if n > 1 {
			text = fmt.Sprintf("%s: %d sizes take longer than the next larger one; the worst: %s.", title, n, worst.text)
		}
		odd = append(odd, oddity{worst.ratio, text})
	}
	uneven, ratio, worst := 0, 0.0, 0
	for i := range rows {
		if it := rows[i].OutOfPlaceIter; it != nil && it.P50 > 0 && it.P99 > 5*it.P50 {
			if uneven++; it.P99/it.P50 > ratio {
				ratio, worst = it.P99/it.P50, i
			}
		}
	}
	if uneven > 0 {
		it := rows[worst].OutOfPlaceIter
		odd = append(odd, oddity{ratio, fmt.Sprintf("%s: uneven at %d of %s; at %s the 99th percentile is %s, the median %s.",
			title, uneven, prose.Count(len(rows), "size"), sizeOf(float64(rows[worst].Size)), micros(it.P99), micros(it.P50))})
	}
	return odd
}

// BelowMean says where a 99th percentile lies below the mean, which no sample's does: they come from two passes. It is ""
// if none does.
func (f *File) BelowMean() string {
	n, worst, text := 0, 1.0, ""
	for i := range f.Results {
		r := &f.Results[i]
		for _, half := range r.Halves() {
			if half.Iter == nil || !(half.Iter.P99 < half.Time) {
				continue
			}
			n++
			if share := half.Iter.P99 / half.Time; share < worst {
				worst = share
				text = fmt.Sprintf("%s %s, %s, %s: its %s, and its mean %s", r.Op, r.Type, sizeOf(float64(r.Size)), half.Where, micros(half.Iter.P99), micros(half.Time))
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the 99th percentile is below the mean in %s: single iterations are timed in a pass of their own, "+
		"and the machine was busier in the other pass. The farthest is %s", prose.Count(n, "half line"), text)
}

// stragglers are the ranks that came late to the barriers, those that did so most often first.
func (f *File) stragglers() (lines []string) {
	type late struct {
		rank, times int
		host        string
		most        float64
	}
	var all []late
	for _, r := range f.Results {
		for _, half := range []*Result{&r.OutOfPlace, &r.InPlace} {
			s := half.Slowest
			if s == nil {
				continue
			}
			i := slices.IndexFunc(all, func(l late) bool { return l.rank == s.Rank })
			if i < 0 {
				i = len(all)
				all = append(all, late{rank: s.Rank, host: s.Host})
			}
			all[i].times++
			all[i].most = max(all[i].most, s.Late)
		}
	}
	slices.SortFunc(all, func(a, b late) int { return b.times - a.times })
	for _, l := range all[:min(len(all), 3)] {
		lines = append(lines, fmt.Sprintf("Rank %d on %s came late to the barrier in %d of %d halves of lines, by %s at most.", l.rank, l.host, l.times, 2*len(f.Results), micros(l.most)))
	}
	return lines
}
