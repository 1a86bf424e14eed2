package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// process is what has one clock.
type process struct {
	host string
	pid  int
}

func processOf(l *line) process { return process{l.Host, l.PID} }

// coarse is how far the recorder's times may lie in the past: the clock that calls read is set
// every 5 ms, and a busy host may be late.
const coarse = 10 * time.Millisecond

// meeting is one call that no rank ends before all have begun it.
type meeting struct {
	comm string
	seq  uint64
}

// span is what a process knows of a meeting, by its own clock.
type span struct{ begin, end time.Duration } // the last begin and the first end of its ranks

// align finds what to add to the times of each process, which count from when it joined the job. A
// first guess are the wall clocks of the hosts; the calls of the job correct it: none ends on one
// rank before it has begun on every rank. Where calls leave room, the guess stays as it is.
func align(j *job) map[process]time.Duration {
	guess, first := map[process]time.Duration{}, map[process]int{}
	spans := map[process]map[meeting]span{}
	var zero time.Time
	lines := func(yield func(id string, l *line) bool) {
		for _, id := range slices.Sorted(maps.Keys(j.comms)) {
			for _, r := range slices.Sorted(maps.Keys(j.comms[id].ranks)) {
				if !yield(id, j.comms[id].ranks[r]) {
					return
				}
			}
		}
	}
	for id, l := range lines {
		p := processOf(l)
		born := l.Time.Add(-l.Clock)
		if zero.IsZero() {
			zero = born
		}
		if _, has := guess[p]; !has {
			guess[p], first[p], spans[p] = born.Sub(zero), l.World, map[meeting]span{}
		}
		first[p] = min(first[p], l.World)
		for i := range l.Calls {
			c := &l.Calls[i]
			if !c.meets() {
				continue
			}
			m := meeting{id, c.Seq}
			s, has := spans[p][m]
			if !has {
				s = span{c.Start, c.End}
			}
			spans[p][m] = span{max(s.begin, c.Start), min(s.end, c.End)}
		}
	}
	order := slices.SortedFunc(maps.Keys(guess), func(a, b process) int {
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a.host, b.host), cmp.Compare(a.pid, b.pid))
	})
	all := map[meeting]span{} // of the processes that are aligned, by the first one's clock
	for _, p := range order {
		lo, hi := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
		for m, mine := range spans[p] {
			if others, met := all[m]; met {
				lo = max(lo, others.begin-mine.end-coarse)
				hi = min(hi, others.end-mine.begin+coarse)
			}
		}
		switch {
		case lo > hi: // the recorders contradict each other
			guess[p] = lo/2 + hi/2
		default:
			guess[p] = min(max(guess[p], lo), hi)
		}
		for m, mine := range spans[p] {
			s, has := all[m]
			if !has {
				s = span{mine.begin + guess[p], mine.end + guess[p]}
			}
			all[m] = span{max(s.begin, mine.begin+guess[p]), min(s.end, mine.end+guess[p])}
		}
	}
	return guess
}

// meets reports whether no rank ends the call before all have begun it, and this rank has ended it.
func (c *call) meets() bool {
	switch c.Kind {
	case "Barrier":
	case "AllReduce", "AllGather", "ReduceScatter", "AllToAll":
		if c.Count == 0 {
			return false
		}
	default:
		return false
	}
	return c.State == "complete" && c.End > 0
}
