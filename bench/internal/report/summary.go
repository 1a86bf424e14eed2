package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Summary is what the footer says.
type Summary struct {
	MinBusBW   float64 // the limits; 0: none
	MaxP99     time.Duration
	MinAverage float64 // the footer says whether the average is as much; 0: it does not

	Wrong   int64
	sum     float64
	n       int
	slowest float64 // the longest 99th percentile, microseconds
	where   string  // and whose it is
}

// Add counts a row.
func (s *Summary) Add(r *Row) {
	for _, h := range r.Halves() {
		if h.Wrong != nil {
			s.Wrong += *h.Wrong
		}
		if h.BusBW != nil && !math.IsInf(*h.BusBW, 0) {
			s.sum += *h.BusBW
			s.n++
		}
		if h.Iter != nil && h.Iter.P99 > s.slowest {
			s.slowest, s.where = h.Iter.P99, fmt.Sprintf("%s %s, %d bytes, %s", r.Op, r.Type, r.Size, h.Where)
		}
	}
}

// BusBW is the average over all rows, both halves.
func (s *Summary) BusBW() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

// Missed says which limits are.
func (s *Summary) Missed() (missed []string) {
	if s.MinBusBW > 0 && s.BusBW() < s.MinBusBW {
		missed = append(missed, fmt.Sprintf("-min-busbw %g: the average bus bandwidth is %.4g GB/s", s.MinBusBW, s.BusBW()))
	}
	if limit := float64(s.MaxP99.Nanoseconds()) / 1e3; limit > 0 && s.slowest > limit {
		missed = append(missed, fmt.Sprintf("-max-p99 %v: the 99th percentile of %s, is %.6g us", s.MaxP99, s.where,
			s.slowest))
	}
	return missed
}

// BelowAverage reports whether the average is less than what the footer compares it with.
func (s *Summary) BelowAverage() bool { return s.BusBW() < s.MinAverage }

// Foot is the lines below the table of what nccl-tests calls program.
func (s *Summary) Foot(program string) string {
	verdict := "OK"
	if s.Wrong != 0 {
		verdict = "FAILED"
	}
	average := ""
	switch {
	case s.BelowAverage():
		average = "FAILED"
	case s.MinAverage > 0:
		average = "OK"
	}
	return fmt.Sprintf("# Out of bounds values : %d %s\n# Avg bus bandwidth    : %s %s\n#\n# Collective test concluded: %s\n#\n",
		s.Wrong, verdict, strconv.FormatFloat(s.BusBW(), 'g', 6, 64), average, program)
}
