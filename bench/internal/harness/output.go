package harness

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/progress"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// output is where rank 0 writes. The other ranks have none: their methods' receiver
// is nil, and nothing happens.
type output struct {
	w        io.Writer // the table
	err      io.Writer // messages
	terminal bool      // a screen is behind it: say how far things are
	narrow   bool      // and one behind the table has no room for all columns
	file     *report.File
	opts     *option.Options
	wrong    int // messages about wrong data so far

	failed  error    // of a write, after which nothing more is written
	headed  bool     // the table has begun: remarks wait for its end, since programs read it
	named   string   // the collective whose heading its first row brings; "": it has it
	after   []string // whole lines for below the footer
	dropped int      // and how many are too many

	clock *progress.Clock // nil where nobody is told how much time is left
}

// mostRows is how many rows the files have at most: of a soak that goes on for days the
// last ones.
const mostRows = 20000

// mostComplaints is how many lines with wrong data are described.
const mostComplaints = 10

// write writes to the table. header, row and finish return the first error of it.
func (o *output) write(text string) {
	if o.failed == nil {
		_, o.failed = io.WriteString(o.w, text)
	}
}

// hostOf is the host of a rank, "" before the header.
func (o *output) hostOf(rank int) string {
	if d := o.file.Config.Devices; rank < len(d) {
		return d[rank].Host
	}
	return ""
}

// header writes what comes before the table.
func (o *output) header() error {
	if o == nil {
		return nil
	}
	if o.file.Describe(o.opts); !o.opts.Quiet {
		o.write(o.file.Header(o.opts))
	}
	return o.failed
}

// links writes the matrix of pairs of hosts.
func (o *output) links(links [][]ccl.HostLink) {
	if o == nil {
		return
	}
	o.write("# links between hosts, in rows from and columns to: MB/s of a connection, and ms of a round trip\n# ")
	for j := range links {
		o.write(fmt.Sprintf(" %15d", j))
	}
	for i, row := range links {
		o.write(fmt.Sprintf("\n# %d", i))
		for j, l := range row {
			if i == j {
				o.write(fmt.Sprintf(" %15s", "-"))
				continue
			}
			o.write(fmt.Sprintf(" %8.1f %6.2f", l.Bandwidth/1e6, l.RoundTrip.Seconds()*1e3))
		}
	}
	o.write("\n")
}

// head starts the table of one collective; named says which, where there are several: its first row brings the heading.
func (o *output) head(name string, named bool) {
	if o == nil || o.headed && !named {
		return // of several cycles the first has written it
	}
	if o.headed = true; named {
		o.named = name
		return
	}
	o.write(o.layout().Head())
}

func (o *output) row(r *report.Row) error {
	if o == nil {
		return nil
	}
	if o.named != "" {
		o.write("#\n# " + o.named + "\n" + o.layout().Head())
		o.named = ""
	}
	r.Time = time.Now().Format(report.StampFormat)
	kept := *r
	if !o.opts.Stamp {
		kept.Time = ""
	}
	if len(o.file.Results) == mostRows {
		o.file.Results = append(o.file.Results[:0], o.file.Results[mostRows/2:]...)
	}
	o.file.Results = append(o.file.Results, kept)
	shown := *r
	if !o.opts.Verbose {
		shown.Algorithm = ""
	}
	if len(o.opts.Backends) > 1 {
		shown.Algorithm = strings.TrimSpace(r.Backend + " " + shown.Algorithm)
	}
	if r.Calls > 0 {
		shown.Algorithm = strings.TrimSpace(fmt.Sprintf("%d x %s %s", r.Calls, r.Op, shown.Algorithm))
	}
	for _, text := range r.Remarks() {
		o.comment("%s", text)
	}
	if r.Overlap != nil {
		o.below("# " + r.Overlapped() + "\n")
	}
	o.write(o.layout().Line(&shown))
	return o.failed
}

// layout is what the table has beside its usual columns.
func (o *output) layout() report.Layout {
	return report.Layout{Iterations: o.opts.Iterations, Stamp: o.opts.Stamp, Zero: o.opts.As != "", Narrow: o.narrow}
}

// mostBelow is how many remarks are kept for below the footer: a run may go on for days.
const mostBelow = 1000

// below keeps whole lines for below the footer: what reads tables finds rows alone between the header and that.
func (o *output) below(lines string) {
	if len(o.after) == mostBelow {
		o.dropped++
		return
	}
	o.after = append(o.after, lines)
}

// tail writes what was kept.
func (o *output) tail() {
	if o.dropped > 0 {
		o.after = append(o.after, fmt.Sprintf("# %d more remarks are omitted\n", o.dropped))
	}
	o.write(strings.Join(o.after, ""))
	o.after, o.dropped = nil, 0
}

// comment is a line that nobody asked for: -q leaves it out.
func (o *output) comment(format string, args ...any) {
	if o != nil && !o.opts.Quiet {
		o.note(format, args...)
	}
}

// note is a line that is no row.
func (o *output) note(format string, args ...any) {
	if o == nil {
		return
	}
	text := fmt.Sprintf("# "+format+"\n", args...)
	if o.headed {
		o.below(text)
		return
	}
	o.write(text)
}

// beside writes the curves of several backends side by side.
func (o *output) beside(rows []*report.Row, backends []string) {
	if o != nil && len(backends) > 1 {
		o.below(report.Beside(rows, backends))
	}
}

// step notes and writes what a whole step took.
func (o *output) step(st *report.Step) {
	if o != nil {
		o.file.Step = st
		o.below(st.Line())
	}
}

// skip lists what the engine does not support.
func (o *output) skip(title string, why error) {
	if o != nil {
		o.file.Skipped = append(o.file.Skipped, title)
		o.below(fmt.Sprintf("# %s: not supported: %v\n", title, why))
	}
}

// complain describes the first wrong element.
func (o *output) complain(all []findings, row *report.Row, inPlace bool) {
	if o == nil {
		return
	}
	for rank, f := range all {
		if f.wrong == 0 {
			continue
		}
		where := "out of place"
		if inPlace {
			where = "in place"
		}
		text := fmt.Sprintf("wrong data: %s %s %s, %d bytes, %s: rank %d", row.Op, row.Type, row.Redop, row.Size, where, rank)
		if row.Type == "none" {
			text += " left before every rank had come"
		} else {
			t, what := typeNamed(row.Type), "element"
			if f.first.Input {
				what = "the call has changed its input: element"
			}
			text += fmt.Sprintf(": %s %d is %s, not %s (wrong there: %d)", what, f.first.Index,
				verify.Format(t, f.first.Got), verify.Format(t, f.first.Want), f.wrong)
		}
		if f.round > 1 {
			text += fmt.Sprintf(", in check %d", f.round)
		}
		o.file.Errors = append(o.file.Errors, text)
		if o.wrong++; o.wrong <= mostComplaints {
			fmt.Fprintln(o.err, "bench: "+text)
		}
		return
	}
}

func typeNamed(name string) ccl.Type {
	for t := ccl.TypeInt8; t <= ccl.TypeFloat8E5M2; t++ {
		if t.String() == name {
			return t
		}
	}
	return ccl.TypeNone
}

// progress says what is being measured.
func (o *output) progress(format string, args ...any) {
	if o != nil && o.terminal {
		fmt.Fprintf(o.err, passing+format+"\n", args...)
	}
}
