package report

import (
	"fmt"
	"slices"
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
		good("All results that were checked are right.")
	}
	for _, c := range f.curves() {
		f.describe(c, bad, good)
	}
	for _, s := range f.stragglers() {
		bad("%s", s)
	}
	if s := f.Step; s != nil {
		good("A step of %s with %s takes %.4g ms for its %d calls of %.4g MB in all.", s.Model, s.Scheme, s.Time/1e3, s.Calls, float64(s.Bytes)/1e6)
	}
	if len(f.Skipped) > 0 {
		good("Not supported, and left out: %d combinations.", len(f.Skipped))
	}
	return words
}

// describe says what a curve reaches, and where it is not what one would expect.
func (f *File) describe(c *curve, bad, good func(string, ...any)) {
	var best *Row
	least := c.rows[0]
	for i := range c.rows {
		r := &c.rows[i]
		if r.OutOfPlace.BusBW != nil && (best == nil || *r.OutOfPlace.BusBW > *best.OutOfPlace.BusBW) {
			best = r
		}
		if r.OutOfPlace.Time < least.OutOfPlace.Time {
			least = *r
		}
	}
	if best != nil && best.Size > 0 {
		share := ""
		if c := f.Config.Ceiling; c != nil && *best.OutOfPlace.BusBW <= c.Bandwidth {
			share = fmt.Sprintf(", %.0f %% of the ceiling", 100**best.OutOfPlace.BusBW/c.Bandwidth)
		}
		good("%s: the most is %.4g GB/s at %s%s; the shortest call takes %s.", c.title(), *best.OutOfPlace.BusBW, sizeOf(float64(best.Size)), share, micros(least.OutOfPlace.Time))
	}
	// A size that is slower than a larger one: an algorithm is chosen too late or too early.
	for i, told := 0, 0; i+1 < len(c.rows) && told < 3; i++ {
		a, b := &c.rows[i], &c.rows[i+1]
		if a.Backend == b.Backend && b.Size > a.Size && a.OutOfPlace.Time > 1.3*b.OutOfPlace.Time+2 {
			told++
			bad("%s: %s takes %s, longer than %s (%s).", c.title(), sizeOf(float64(a.Size)), micros(a.OutOfPlace.Time), sizeOf(float64(b.Size)), micros(b.OutOfPlace.Time))
		}
	}
	uneven, worst := 0, &Row{}
	for i := range c.rows {
		if it := c.rows[i].OutOfPlaceIter; it != nil && it.P50 > 0 && it.P99 > 5*it.P50 {
			if uneven++; uneven == 1 || it.P99/it.P50 > worst.OutOfPlaceIter.P99/worst.OutOfPlaceIter.P50 {
				worst = &c.rows[i]
			}
		}
	}
	if uneven > 0 {
		it := worst.OutOfPlaceIter
		bad("%s: %d of %d sizes are uneven; at %s one call in a hundred takes %s, the middle one %s.", c.title(), uneven, len(c.rows), sizeOf(float64(worst.Size)), micros(it.P99), micros(it.P50))
	}
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
