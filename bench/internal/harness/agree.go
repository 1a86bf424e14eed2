package harness

import (
	"context"
	"encoding/json"
	"math"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// found is what one rank has found in one half of a line.
type found struct {
	us        float64 // per call
	firstCall float64
	late      float64
	host      string

	checked       bool
	wrong         int
	first         verify.Wrong
	round, rounds int // the check that found the first wrong element, from 1; how many there were

	// Of a barrier: when this rank entered and left, by the clock of its host; and its group.
	node, group int
	enter, exit int64
}

// words are found as numbers.
const words = 13

func (f *found) pack() []uint64 {
	return []uint64{math.Float64bits(f.us), math.Float64bits(f.firstCall), math.Float64bits(f.late),
		bit(f.checked), uint64(f.wrong), uint64(f.first.Index), f.first.Got, f.first.Want, uint64(f.round),
		uint64(f.node), uint64(f.group), uint64(f.enter), uint64(f.exit)}
}

func unpack(w []uint64) found {
	return found{us: math.Float64frombits(w[0]), firstCall: math.Float64frombits(w[1]), late: math.Float64frombits(w[2]),
		checked: w[3] != 0, wrong: int(w[4]), first: verify.Wrong{Index: int(w[5]), Got: w[6], Want: w[7]}, round: int(w[8]),
		node: int(w[9]), group: int(w[10]), enter: int64(w[11]), exit: int64(w[12])}
}

// agree brings together what the ranks have found: every rank gets the same result.
func (s *session) agree(ctx context.Context, f *found, row *report.Row, inPlace bool, factor float64) (report.Result, error) {
	f.group = s.group
	flat := make([]uint64, words*s.world.Size())
	if err := ccl.AllGather(ctx, s.world, flat, f.pack()); err != nil {
		return report.Result{}, err
	}
	all := make([]found, s.world.Size())
	for r := range all {
		all[r] = unpack(flat[r*words:])
	}
	early(all)
	s.out.complain(all, row, inPlace)
	result := combine(all, s.o.Average, row.Size, factor)
	if slow := standsOut(all, result.Time); slow != nil && !s.o.Flush { // sweeping takes its own time

		host, err := s.hostOf(ctx, slow.Rank, f.host)
		if err != nil {
			return report.Result{}, err
		}
		slow.Host = host
		result.Slowest = slow
	}
	return result, nil
}

// hostOf is the host of a rank, which it tells.
func (s *session) hostOf(ctx context.Context, rank int, mine string) (string, error) {
	room := make([]uint8, placeRoom)
	if rank == s.world.Rank() {
		text, _ := json.Marshal(clip(mine))
		copy(room, text)
	}
	if err := ccl.Broadcast(ctx, s.world, room, rank); err != nil {
		return "", err
	}
	var host string
	err := json.Unmarshal(trim(room), &host)
	return host, err
}

// standsOut is the rank that comes latest to the barriers, if the others are all much
// earlier: three times, and by half of the call's time and 20 microseconds, which is
// more than ranks that share cores do to each other. Of two ranks one is always later,
// so there it takes the whole of the call's time, and 50.
func standsOut(all []found, us float64) *report.Straggler {
	if len(all) < 2 {
		return nil
	}
	last := 0
	for r, f := range all {
		if f.late > all[last].late {
			last = r
		}
	}
	next := 0.0
	for r, f := range all {
		if r != last {
			next = max(next, f.late)
		}
	}
	by := all[last].late - next
	if len(all) == 2 && by > max(us, 50) || len(all) > 2 && by > max(us/2, 20) && all[last].late > 3*next {
		return &report.Straggler{Rank: last, Late: report.Nanos(all[last].late), Rest: report.Nanos(next)}
	}
	return nil
}

// early counts as wrong each rank that left a barrier before another rank of its
// group and host, by the same clock, had entered it.
func early(all []found) {
	type place struct{ group, node int }
	last := map[place]int64{}
	for _, f := range all {
		at := place{f.group, f.node}
		last[at] = max(last[at], f.enter)
	}
	for r := range all {
		if f := &all[r]; f.exit != 0 && f.exit < last[place{f.group, f.node}] {
			f.wrong++
		}
	}
}

// combine makes one result of what all ranks have found.
func combine(all []found, average option.Average, size int, factor float64) report.Result {
	least, most, sum, first := all[0].us, all[0].us, 0.0, 0.0
	wrong, checked := int64(0), true
	for _, f := range all {
		least, most, sum, first = min(least, f.us), max(most, f.us), sum+f.us, max(first, f.firstCall)
		wrong += int64(f.wrong)
		checked = checked && f.checked
	}
	mean := sum / float64(len(all))
	us := [...]float64{option.OfRank0: all[0].us, option.Mean: mean, option.Least: least, option.Most: most}[average]
	r := report.NewResult(size, us, factor)
	r.TimeMin, r.TimeAvg, r.TimeMax, r.First = least, mean, most, report.Nanos(first)
	if checked {
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
