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

// Words say what stands out in f: what is wrong, what qualifies all of it, what is reached; the rest comes after.
func (f *File) Words() (words []Word) {
	bad := func(format string, args ...any) { words = append(words, Word{fmt.Sprintf(format, args...), true}) }
	good := func(format string, args ...any) { words = append(words, Word{fmt.Sprintf(format, args...), false}) }
	for _, e := range f.Errors[:min(len(f.Errors), 5)] {
		bad("%s", e)
	}
	for _, l := range f.Limits {
		bad("Missed: %s", l)
	}
	if f.Busy != "" {
		bad("%s.", sentence(f.Busy))
	}
	if len(f.Errors) == 0 && f.OutOfBounds.OK && slices.ContainsFunc(f.Results, isChecked) {
		good("All checked results are correct.")
	}
	if s := f.Step; s != nil {
		good("A step of %s with %s takes %.4g ms for its %d calls of %.4g MB in all.", s.Model, s.Scheme, s.Time/1e3,
			s.Calls, float64(s.Bytes)/1e6)
	}
	reached, odd := f.remarks()
	for _, r := range reached[:min(len(reached), 1)] {
		good("%s", r.text)
	}
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
	for _, r := range reached[min(len(reached), 1):] {
		good("%s", r.text)
	}
	if len(f.Skipped) > 0 {
		good("Not supported and left out: %d combinations.", len(f.Skipped))
	}
	return words
}

// isChecked reports whether results of r were looked at.
func isChecked(r Row) bool { return r.OutOfPlace.Wrong != nil || r.InPlace.Wrong != nil }

// remark is a sentence about one lane, and how much it matters among those of its kind.
type remark struct {
	weight float64
	text   string
}

// mostOdd are told.
const mostOdd = 8

// remarks are what the lanes reach, and where they are not what one would expect; of each kind the weightiest first.
func (f *File) remarks() (reached, odd []remark) {
	for _, c := range f.curves() {
		for _, l := range f.lanes(c) {
			title := c.title()
			if l.name != "" {
				title += " (" + l.name + ")"
			}
			reached = append(reached, f.most(title, l.rows)...)
			odd = append(odd, slower(title, l.rows)...)
			odd = append(odd, uneven(title, l.rows)...)
		}
	}
	for _, list := range [][]remark{reached, odd} {
		slices.SortStableFunc(list, func(a, b remark) int { return cmp.Compare(b.weight, a.weight) })
	}
	return reached, odd
}

// most is what a lane reaches, in either half.
func (f *File) most(title string, rows []Row) []remark {
	type spot struct {
		Half
		size int
	}
	var best, short spot
	for i := range rows {
		for _, h := range rows[i].Halves() {
			if h.BusBW != nil && (best.Result == nil || *h.BusBW > *best.BusBW) {
				best = spot{h, rows[i].Size}
			}
			if h.Time > 0 && (short.Result == nil || h.Time < short.Time) {
				short = spot{h, rows[i].Size}
			}
		}
	}
	if best.Result == nil || short.Result == nil || best.size == 0 {
		return nil
	}
	share := ""
	if c := f.Config.Ceiling; c != nil && *best.BusBW <= c.Bandwidth {
		share = fmt.Sprintf(", %.0f %% of the ceiling", 100**best.BusBW/c.Bandwidth)
	}
	return []remark{{*best.BusBW, fmt.Sprintf("%s: the most is %.4g GB/s, at %s %s%s; the shortest call takes %s, at %s %s.",
		title, *best.BusBW, sizeOf(float64(best.size)), best.Where, share, micros(short.Time), sizeOf(float64(short.size)),
		short.Where)}}
}

// slower finds sizes that take longer than a larger one in the same half: an algorithm is chosen too late or too early.
func slower(title string, rows []Row) []remark {
	var found []remark
	for i := range rows[1:] {
		larger := rows[i+1].Halves()
		for k, h := range rows[i].Halves() {
			if next := larger[k]; rows[i+1].Size > rows[i].Size && next.Time > 0 && h.Time > 1.3*next.Time+2 {
				found = append(found, remark{h.Time / next.Time, fmt.Sprintf("%s takes %s %s, longer than %s (%s)",
					sizeOf(float64(rows[i].Size)), micros(h.Time), h.Where, sizeOf(float64(rows[i+1].Size)), micros(next.Time))})
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	worst := slices.MaxFunc(found, func(a, b remark) int { return cmp.Compare(a.weight, b.weight) })
	if n := len(found); n > 1 {
		worst.text = fmt.Sprintf("%s take longer than the next larger size; the worst: %s", prose.Count(n, "half line"),
			worst.text)
	}
	return []remark{{worst.weight, title + ": " + worst.text + "."}}
}

// uneven finds sizes of which some iterations take much longer than others.
func uneven(title string, rows []Row) []remark {
	n, all, worst := 0, 0, remark{}
	for i := range rows {
		for _, h := range rows[i].Halves() {
			if h.Iter == nil || h.Iter.P50 <= 0 {
				continue
			}
			all++
			ratio := h.Iter.P99 / h.Iter.P50
			if ratio <= 5 {
				continue
			}
			if n++; ratio > worst.weight {
				worst = remark{ratio, fmt.Sprintf("at %s %s the 99th percentile is %s, the median %s",
					sizeOf(float64(rows[i].Size)), h.Where, micros(h.Iter.P99), micros(h.Iter.P50))}
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []remark{{worst.weight, fmt.Sprintf("%s: uneven in %d of %s; %s.", title, n, prose.Count(all, "half line"),
		worst.text)}}
}

// BelowMean says where a 99th percentile lies below the mean, which no sample's does: they come
// from two passes. It is "" if none does.
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
				text = fmt.Sprintf("%s %s, %s, %s: its %s, and its mean %s", r.Op, r.Type, sizeOf(float64(r.Size)), half.Where,
					micros(half.Iter.P99), micros(half.Time))
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
