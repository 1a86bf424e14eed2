package report

import (
	"math"

	"github.com/goccl/goccl/bench/internal/stat"
)

// Row is one line of the table.
type Row struct {
	Op         string `json:"op"`
	Size       int    `json:"size"`
	Count      int    `json:"count"`
	Type       string `json:"type"`
	Redop      string `json:"redop"`
	Root       int    `json:"root"`
	OutOfPlace Result `json:"out_of_place"`
	InPlace    Result `json:"in_place"`

	OutOfPlaceIter *PerIter `json:"out_of_place_per_iter,omitempty"`
	InPlaceIter    *PerIter `json:"in_place_per_iter,omitempty"`

	Backend    string   `json:"backend,omitempty"`
	Algorithm  string   `json:"algorithm,omitempty"`
	Iterations int      `json:"-"`               // that were timed, out of place
	Cycle      int      `json:"cycle,omitempty"` // of -N and -for, from 0
	Time       string   `json:"timestamp,omitempty"`
	Calls      int      `json:"calls,omitempty"` // of -plan: how many of these a step has
	Overlap    *Overlap `json:"overlap,omitempty"`
}

// Result is one half of a line.
type Result struct {
	Time  float64  `json:"time"`   // microseconds per call
	AlgBW float64  `json:"alg_bw"` // GB/s
	BusBW *float64 `json:"bus_bw"` // nil where it has no meaning: one rank
	Wrong *int64   `json:"nwrong"` // nil if not checked

	TimeMin float64 `json:"time_min"` // over the ranks
	TimeAvg float64 `json:"time_avg"`
	TimeMax float64 `json:"time_max"`

	First   float64    `json:"first_call_us,omitempty"` // the slowest rank's first call of its kind
	Slowest *Straggler `json:"slowest,omitempty"`       // a rank that stands out
}

// Half is a half of a line, with what its single iterations took, and which half it is.
type Half struct {
	*Result
	Iter  *PerIter // nil if they were not timed
	Where string
}

// Halves are those of r: out of place and in place.
func (r *Row) Halves() [2]Half {
	return [2]Half{{&r.OutOfPlace, r.OutOfPlaceIter, "out of place"}, {&r.InPlace, r.InPlaceIter, "in place"}}
}

// Typical is the time of the middle iteration, or else of the mean one; 0 of a half that was not measured.
func (h Half) Typical() float64 {
	if h.Iter != nil {
		return h.Iter.P50
	}
	return h.Time
}

// Straggler is a rank that the others wait for.
type Straggler struct {
	Rank int     `json:"rank"`
	Host string  `json:"hostname"`
	Late float64 `json:"late_us"`  // it comes to a barrier that much after the first
	Rest float64 `json:"other_us"` // and the next latest, that much
}

// PerIter is what the pass has found in which each iteration is timed by itself: of
// each iteration the slowest rank's time.
type PerIter struct {
	Min     float64 `json:"min_us"`
	Max     float64 `json:"max_us"`
	Avg     float64 `json:"avg_us"`
	P50     float64 `json:"p50_us"`
	P95     float64 `json:"p95_us"`
	P99     float64 `json:"p99_us"`
	Stdev   float64 `json:"stdev_us"`
	CV      float64 `json:"cv_pct"`
	Skipped int     `json:"skipped_iterations,omitempty"` // the first ones, in Times and Ranks alone
	// from the first rank's arrival at the barrier before a call to the last's, in the middle
	// iteration
	Skew float64 `json:"skew_us"`

	Times []float64   `json:"times_us,omitempty"`
	Ranks [][]float64 `json:"per_process_max_times_us,omitempty"` // by rank
}

// NewPerIter describes the iterations' times, but for the first ones that are skipped.
func NewPerIter(times []float64, ranks [][]float64, skew float64, skipped int) *PerIter {
	s := stat.Of(times[skipped:])
	p := &PerIter{Skipped: skipped, Skew: Nanos(skew), Min: Nanos(s.Min), Max: Nanos(s.Max), Avg: Nanos(s.Avg),
		P50: Nanos(s.P50), P95: Nanos(s.P95), P99: Nanos(s.P99),
		Stdev: Nanos(s.Stdev), CV: Nanos(s.CV), Times: times, Ranks: ranks}
	for _, list := range append(ranks, times) {
		for i := range list {
			list[i] = Nanos(list[i])
		}
	}
	return p
}

// Nanos rounds microseconds to the nanosecond, as far as clocks tell.
func Nanos(us float64) float64 { return math.Round(us*1e3) / 1e3 }

// Overlap is how much of a call is hidden behind compute.
type Overlap struct {
	Comm     float64 `json:"comm_us"`     // the call alone
	Compute  float64 `json:"compute_us"`  // the compute alone
	Together float64 `json:"together_us"` // both at the same time
	Exposed  float64 `json:"exposed_us"`  // Together - Compute
	Hidden   float64 `json:"hidden_pct"`  // of Comm
	Ratio    float64 `json:"comm_comp"`   // Comm / Compute
}

// NewOverlap computes what is hidden.
func NewOverlap(comm, compute, together float64) *Overlap {
	o := &Overlap{Comm: comm, Compute: compute, Together: together, Exposed: max(together-compute, 0)}
	if comm > 0 {
		o.Hidden = 100 * max(1-o.Exposed/comm, 0)
	}
	if compute > 0 {
		o.Ratio = comm / compute
	}
	return o
}

// NewResult computes the bandwidths: of size bytes in us microseconds, with the
// factor that gives busbw, 0 for none.
func NewResult(size int, us, factor float64) Result {
	r := Result{Time: us}
	if us > 0 {
		r.AlgBW = float64(size) / us / 1e3
	}
	if factor > 0 {
		bus := r.AlgBW * factor
		r.BusBW = &bus
	}
	return r
}

// StampFormat is how -S writes the time of day.
const StampFormat = "2006-01-02 15:04:05"
