// Package report writes what bench finds: the table, in nccl-tests' layout to the
// character, so that what reads theirs reads ours, and the JSON file.
package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Layout says which columns the table has beside nccl-tests' usual ones.
type Layout struct {
	Iterations bool // i_min i_max i_p99 i_cv% in each half, as their -I 1
	Stamp      bool // the time of day, as their -S 1
}

// Head writes the three lines above the columns, and the line before them. Those
// of nccl-tests end in blanks, and so do these.
func (l Layout) Head(w io.Writer) error {
	wide := strings.Repeat(" ", 18*bit(l.Iterations))
	_, err := fmt.Fprintf(w, "#\n# %50s%s           out-of-place          %s             in-place          \n%s%s", "", wide, wide,
		l.heading([]string{"size", "count", "type", "redop", "root"}, []string{"time", "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"}),
		l.heading([]string{"(B)", "(elements)", "", "", ""}, []string{"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", ""}))
	return err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

var (
	callWidths = []int{10, 12, 8, 6, 6}
	halfWidths = []int{7, 6, 6, 6, 7, 7, 7, 7}
)

func (l Layout) heading(call, half []string) string {
	var b strings.Builder
	b.WriteString("#")
	for i, width := range callWidths {
		fmt.Fprintf(&b, "%s%*s", "  "[bit(i == 0):], width, call[i])
	}
	columns := 4 + 4*bit(l.Iterations)
	for range 2 {
		for i, width := range halfWidths[:columns] {
			fmt.Fprintf(&b, "  %*s", width, half[i])
		}
	}
	return b.String() + " \n"
}

// Line is r as a line of the table.
func (l Layout) Line(r *Row) string {
	line := fmt.Sprintf("%12d  %12d  %8s  %6s  %6d%s%s", r.Size, r.Count, r.Type, r.Redop, r.Root,
		l.half(&r.OutOfPlace, r.OutOfPlaceIter), l.half(&r.InPlace, r.InPlaceIter))
	if l.Stamp {
		line += "  " + r.Time
	}
	if r.Algorithm != "" {
		line += "  " + r.Algorithm
	}
	return line + "\n"
}

// half is one half of a line, with its iterations where the table has them.
func (l Layout) half(r *Result, p *PerIter) string {
	if !l.Iterations || p == nil {
		return r.half()
	}
	return fmt.Sprintf("%s  %7s  %7s  %7s  %7s", r.half(), fit(p.Min, 7), fit(p.Max, 7), fit(p.P99, 7), fit(p.CV, 7))
}

// Notes are lines below r that say what stands out; "" as a rule.
func (r *Row) Notes() string {
	var b strings.Builder
	for _, half := range []struct {
		where string
		r     *Result
	}{{"out of place", &r.OutOfPlace}, {"in place", &r.InPlace}} {
		if s := half.r.Slowest; s != nil {
			fmt.Fprintf(&b, "# ^ %s: rank %d on %s comes %s us late to the barrier, the next %s us\n", half.where, s.Rank, s.Host, fit(s.Late, 7), fit(s.Rest, 7))
		}
	}
	if o := r.Overlap; o != nil {
		fmt.Fprintf(&b, "# ^ overlap: alone %s us, compute %s us, together %s us: %s us exposed, %.0f %% hidden, comm:comp %.2f\n",
			fit(o.Comm, 7), fit(o.Compute, 7), fit(o.Together, 7), fit(o.Exposed, 7), o.Hidden, o.Ratio)
	}
	return b.String()
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
