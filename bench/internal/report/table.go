// Package report writes what bench finds: the table, in nccl-tests' layout to the
// character, so that what reads theirs reads ours, and the JSON file.
package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
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
	Algorithm  string `json:"algorithm,omitempty"`
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

// Head writes the three lines above the columns, and the line before them. Those
// of nccl-tests end in blanks, and so do these.
func Head(w io.Writer) error {
	names := []string{"time", "algbw", "busbw", "#wrong"}
	units := []string{"(us)", "(GB/s)", "(GB/s)", ""}
	_, err := fmt.Fprintf(w, "#\n# %50s           out-of-place                       in-place          \n%s%s", "",
		heading([]string{"size", "count", "type", "redop", "root"}, names),
		heading([]string{"(B)", "(elements)", "", "", ""}, units))
	return err
}

func heading(call, half []string) string {
	var b strings.Builder
	b.WriteString("#")
	for i, width := range []int{10, 12, 8, 6, 6, 7, 6, 6, 6, 7, 6, 6, 6} {
		if i == 0 {
			b.WriteString(" ")
		} else {
			b.WriteString("  ")
		}
		name := ""
		if i < 5 {
			name = call[i]
		} else {
			name = half[(i-5)%4]
		}
		fmt.Fprintf(&b, "%*s", width, name)
	}
	return b.String() + " \n"
}

// Line is r as a line of the table.
func (r *Row) Line() string {
	line := fmt.Sprintf("%12d  %12d  %8s  %6s  %6d%s%s", r.Size, r.Count, r.Type, r.Redop, r.Root, r.OutOfPlace.half(), r.InPlace.half())
	if r.Algorithm != "" {
		line += "  " + r.Algorithm
	}
	return line + "\n"
}

func (r *Result) half() string {
	bus, wrong := "n/a", "N/A"
	if r.BusBW != nil {
		bus = fit(*r.BusBW, 6)
	}
	if r.Wrong != nil {
		wrong = strconv.FormatFloat(float64(*r.Wrong), 'g', 6, 64)
	}
	return fmt.Sprintf("  %7s  %6s  %6s  %6s", fit(r.Time, 7), fit(r.AlgBW, 6), bus, wrong)
}

// fit writes x with as many decimals, of two at most, as width leaves room for.
func fit(x float64, width int) string {
	for decimals := 2; decimals >= 0; decimals-- {
		if s := strconv.FormatFloat(x, 'f', decimals, 64); len(s) <= width {
			return s
		}
	}
	return strconv.FormatFloat(x, 'e', max(width-6, 0), 64)
}

// Summary is what the footer says.
type Summary struct {
	Wrong int64
	sum   float64
	n     int
}

// Add counts a row.
func (s *Summary) Add(r *Row) {
	for _, h := range []*Result{&r.OutOfPlace, &r.InPlace} {
		if h.Wrong != nil {
			s.Wrong += *h.Wrong
		}
		if h.BusBW != nil && !math.IsInf(*h.BusBW, 0) {
			s.sum += *h.BusBW
			s.n++
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

// Foot writes the lines below the table.
func (s *Summary) Foot(w io.Writer) error {
	verdict := "OK"
	if s.Wrong != 0 {
		verdict = "FAILED"
	}
	_, err := fmt.Fprintf(w, "# Out of bounds values : %d %s\n# Avg bus bandwidth    : %s \n#\n",
		s.Wrong, verdict, strconv.FormatFloat(s.BusBW(), 'g', 6, 64))
	return err
}
