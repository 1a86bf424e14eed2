package harness

import (
	"context"
	"math"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// findings is what one rank has found in one half of a line.
type findings struct {
	us        float64 // per call
	firstCall float64
	late      float64

	checked       bool
	wrong         int
	first         verify.Wrong
	round, rounds int // the check that found the first wrong element, from 1; how many there were

	busy  float64 // of the size, what this rank's link carries
	other bool    // its group is not of rank 0's size: its times are those of other calls
}

// words are found as numbers.
const words = 10

func (f *findings) pack() []uint64 {
	return []uint64{math.Float64bits(f.us), math.Float64bits(f.firstCall), math.Float64bits(f.late),
		bit(f.checked), uint64(f.wrong), uint64(f.first.Index)<<1 | bit(f.first.Input), f.first.Got, f.first.Want,
		uint64(f.round),
		math.Float64bits(f.busy)}
}

func unpack(w []uint64) findings {
	return findings{us: math.Float64frombits(w[0]), firstCall: math.Float64frombits(w[1]),
		late:    math.Float64frombits(w[2]),
		checked: w[3] != 0, wrong: int(w[4]),
		first: verify.Wrong{Index: int(w[5] >> 1), Input: w[5]&1 != 0, Got: w[6], Want: w[7]}, round: int(w[8]),
		busy: math.Float64frombits(w[9])}
}

// agree brings together what the ranks have found: every rank gets the same result, but for the name of a host.
func (s *session) agree(ctx context.Context, f *findings, row *report.Row, inPlace bool) (report.Result, error) {
	flat := make([]uint64, words*s.world.Size())
	if err := ccl.AllGather(ctx, s.world, flat, f.pack()); err != nil {
		return report.Result{}, err
	}
	all, factor := make([]findings, s.world.Size()), 0.0
	for r := range all {
		all[r] = unpack(flat[r*words:])
		all[r].other = !s.groups.alike(r)
		if s.groups.together(r) {
			factor = max(factor, all[r].busy)
		}
	}
	s.out.complain(all, row, inPlace)
	result := combine(all, s.o.Average, row.Size, factor)
	if !s.o.Flush { // sweeping takes its own time
		result.Slowest = standsOut(all, result.Time)
	}
	if result.Slowest != nil && s.out != nil {
		result.Slowest.Host = s.out.hostOf(result.Slowest.Rank)
	}
	return result, nil
}

// standsOut is the rank that comes latest to the barriers, if the others are all much
// earlier: three times, and by half of the call's time and 20 microseconds, which is
// more than ranks that share cores do to each other. Of two ranks one is always later,
// so there it takes the whole of the call's time, and 50.
func standsOut(all []findings, us float64) *report.Straggler {
	last, next, n := 0, 0.0, 0
	for r, f := range all {
		switch {
		case f.other:
			continue
		case f.late > all[last].late:
			last, next = r, all[last].late
		case r > 0:
			next = max(next, f.late)
		}
		n++
	}
	by := all[last].late - next
	if n == 2 && by > max(us, 50) || n > 2 && by > max(us/2, 20) && all[last].late > 3*next {
		return &report.Straggler{Rank: last, Late: report.Nanos(all[last].late), Rest: report.Nanos(next)}
	}
	return nil
}

// combine makes one result of what all ranks have found; times are those of the ranks whose calls
// are rank 0's.
func combine(all []findings, average option.Average, size int, factor float64) report.Result {
	least, most, sum, first := all[0].us, all[0].us, 0.0, 0.0
	wrong, checked, n := int64(0), true, 0
	for _, f := range all {
		wrong += int64(f.wrong)
		checked = checked && f.checked
		if f.other {
			continue
		}
		n++
		least, most, sum, first = min(least, f.us), max(most, f.us), sum+f.us, max(first, f.firstCall)
	}
	mean := sum / float64(n)
	us := [...]float64{option.OfRank0: all[0].us, option.Mean: mean, option.Least: least, option.Most: most}[average]
	r := report.NewResult(size, us, factor)
	r.TimeMin, r.TimeAvg, r.TimeMax, r.First = least, mean, most, report.Nanos(first)
	if checked || wrong > 0 {
		r.Wrong = &wrong
	}
	return r
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
