// Package report writes what bench finds: the table, in nccl-tests' layout to the
// character, so that what reads theirs reads ours, and the JSON file.
package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
)

// Layout says which columns the table has beside nccl-tests' usual ones.
type Layout struct {
	Iterations bool // i_min i_max i_p99 i_cv% in each half, as their -I 1
	Stamp      bool // the time of day, as their -S 1
	Zero       bool // 0.00 where busbw has no meaning, as there
	Narrow     bool // for a screen that has no room for all columns: size, times, busbw, wrong elements
}

// Wide is how many columns a screen needs for the usual table; one with fewer is Narrow.
const Wide = 118

// narrowHead are the lines above the columns of a narrow table.
const narrowHead = "#\n#          out of place               in place\n#    size       us    GB/s  #wrong       us    GB/s  #wrong\n"

// narrow is r as a line of a narrow table.
func (l Layout) narrow(r *Row) string {
	half := func(h *Result) string {
		return fmt.Sprintf("  %7s  %6s  %6s", fit(h.Time, 7), h.bus(6), h.wrong())
	}
	return fmt.Sprintf("%9s%s%s\n", option.FormatSize(r.Size), half(&r.OutOfPlace), half(&r.InPlace))
}

// Head is the three lines above the columns, and the line before them. Those
// of nccl-tests end in blanks, and so do these.
func (l Layout) Head() string {
	if l.Narrow {
		return narrowHead
	}
	over := strings.Repeat(" ", 11) + "out-of-place" + strings.Repeat(" ", 23) + "in-place          "
	half, units := []string{"time", "algbw", "busbw", "#wrong"}, []string{"(us)", "(GB/s)", "(GB/s)", ""}
	if l.Iterations {
		over = strings.Repeat(" ", 14) + "out-of-place (+ per-iteration)" + strings.Repeat(" ", 32) +
			"in-place (+ per-iteration)"
		half, units = append(half, "i_min", "i_max", "i_p99", "i_cv%"), append(units, "(us)", "(us)", "(us)", "(%)")
	}
	stamp, form := "", ""
	if l.Stamp {
		stamp, form = fmt.Sprintf("%19s", "timestamp"), fmt.Sprintf("%19s", "%Y-%m-%d %H:%M:%S")
	}
	return fmt.Sprintf("#\n# %50s%s\n%s %s\n%s %s\n", "", over,
		heading([]string{"size", "count", "type", "redop", "root"}, half), stamp,
		heading([]string{"(B)", "(elements)", "", "", ""}, units), form)
}

var (
	callWidths = []int{10, 12, 8, 6, 6}
	halfWidths = []int{7, 6, 6, 6, 7, 7, 7, 7}
)

func heading(call, half []string) string {
	var b strings.Builder
	b.WriteString("# ")
	for i, width := range callWidths {
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintf(&b, "%*s", width, call[i])
	}
	for range 2 {
		for i, name := range half {
			fmt.Fprintf(&b, "  %*s", halfWidths[i], name)
		}
	}
	return b.String()
}

// Line is r as a line of the table.
func (l Layout) Line(r *Row) string {
	if l.Narrow {
		return l.narrow(r)
	}
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
		return r.half(l.Zero)
	}
	return fmt.Sprintf("%s  %7s  %7s  %7s  %7s", r.half(l.Zero), fit(p.Min, 7), fit(p.Max, 7), fit(p.P99, 7), fit(p.CV, 7))
}

// Remarks say what stands out in r; there are none as a rule.
func (r *Row) Remarks() (all []string) {
	for _, half := range r.Halves() {
		if s := half.Slowest; s != nil {
			all = append(all, fmt.Sprintf("%s, %s: rank %d on %s arrives %s us late at the barrier, the next %s us",
				r.named(), half.Where, s.Rank, s.Host, fit(s.Late, 7), fit(s.Rest, 7)))
		}
	}
	return all
}

// Overlapped says how much of r's call is hidden behind compute.
func (r *Row) Overlapped() string {
	o := r.Overlap
	return fmt.Sprintf("%s, overlap: alone %s us, compute %s us, together %s us: %s us exposed, %.0f %% hidden, comm:comp %.2f",
		r.named(), fit(o.Comm, 7), fit(o.Compute, 7), fit(o.Together, 7), fit(o.Exposed, 7), o.Hidden, o.Ratio)
}

// named is which row r is.
func (r *Row) named() string {
	row := fmt.Sprintf("%s %s", r.Op, r.Type)
	if r.Redop != "none" {
		row += " " + r.Redop
	}
	if r.Root >= 0 {
		row += fmt.Sprintf(" root %d", r.Root)
	}
	row += fmt.Sprintf(", %d bytes", r.Size)
	if r.Cycle > 0 {
		row += fmt.Sprintf(", cycle %d", r.Cycle)
	}
	return row
}

func (h *Result) half(zero bool) string {
	bus, wrong := h.bus(6), "N/A"
	if zero && h.BusBW == nil {
		bus = fit(0, 6)
	}
	if h.Wrong != nil {
		wrong = strconv.FormatFloat(float64(*h.Wrong), 'g', 6, 64)
	}
	return fmt.Sprintf("  %7s  %6s  %6s  %6s", fit(h.Time, 7), fit(h.AlgBW, 6), bus, wrong)
}

// bus is the busbw in so many columns, n/a where it has no meaning.
func (h *Result) bus(width int) string {
	if h.BusBW == nil {
		return "n/a"
	}
	return fit(*h.BusBW, width)
}

// wrong is how many elements are, N/A where they were not checked.
func (h *Result) wrong() string {
	if h.Wrong == nil {
		return "N/A"
	}
	return strconv.FormatInt(*h.Wrong, 10)
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
