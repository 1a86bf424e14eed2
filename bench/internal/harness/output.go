package harness

import (
	"fmt"
	"io"

	"github.com/goccl/goccl/bench/internal/option"
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
	file     *report.File
	wrong    int // messages about wrong data so far
}

// mostComplaints is how many lines with wrong data are described.
const mostComplaints = 10

// header writes what comes before the table.
func (o *output) header(j *report.Job, opts *option.Options) error {
	if o == nil {
		return nil
	}
	o.file.Describe(j, opts)
	return report.Header(o.w, j, opts)
}

// head starts the table of one collective; named says which, where there are several.
func (o *output) head(name string, named bool) error {
	if o == nil {
		return nil
	}
	if named {
		if _, err := fmt.Fprintf(o.w, "#\n# %s\n", name); err != nil {
			return err
		}
	}
	return report.Head(o.w)
}

func (o *output) row(r *report.Row) error {
	if o == nil {
		return nil
	}
	o.file.Results = append(o.file.Results, *r)
	_, err := io.WriteString(o.w, r.Line())
	return err
}

// skip lists what the engine does not support.
func (o *output) skip(title string, why error) error {
	if o == nil {
		return nil
	}
	o.file.Skipped = append(o.file.Skipped, title)
	_, err := fmt.Fprintf(o.w, "# %s: not supported: %v\n", title, why)
	return err
}

func (o *output) foot(s *report.Summary) error {
	if o == nil {
		return nil
	}
	return s.Foot(o.w)
}

// complain describes the first wrong element.
func (o *output) complain(all []found, row *report.Row, inPlace bool) {
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
			t := typeNamed(row.Type)
			text += fmt.Sprintf(": element %d is %s, not %s (wrong there: %d)", f.first.Index,
				verify.Format(t, f.first.Got), verify.Format(t, f.first.Want), f.wrong)
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
