package fit

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
)

const fitUsage = `bench fit finds latency (alpha) and bandwidth (1/beta) of the links in a stored run (-J),
from the messages that each algorithm sends, and says what more ranks would take. Of a run
on one host it finds those of whole calls, by ranges of sizes.

  bench fit [flags] RUN.json

`

const fitEnd = `
Exit status: 0 good, 1 it could not be fitted, 2 bad usage.
`

// Command is bench fit.
func Command(args []string, stdout, stderr io.Writer) int {
	sub := option.NewSub("fit", fitUsage, fitEnd, stdout, stderr)
	to := sub.String("extrapolate", "LIST", "", "predict the time for these numbers of ranks: a comma LIST, such as 38400,120960")
	force := sub.Bool("force", "predict even for more than 16 times the measured ranks")
	only := sub.String("op", "OP", "", "fit only this OP (all in the run)")
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	if len(sub.Operands) != 1 {
		return sub.Complain(option.BadUsage, errors.New("it fits one file that -J has written: bench fit run.json"))
	}
	ranks, err := numbers(*to)
	if err != nil {
		return sub.Complain(option.BadUsage, fmt.Errorf("-extrapolate %s: %w", *to, err))
	}
	f, _, err := report.Load(sub.Operands[0])
	if err != nil {
		return sub.Complain(option.BadUsage, err)
	}
	status := option.Good
	for _, op := range operations(f, *only) {
		l, err := Of(f, op)
		switch {
		case err == nil:
			err = l.write(stdout, ranks, *force)
		case errors.Is(err, errUnknown) && len(ranks) == 0:
			var p *Plain
			if p, err = PlainOf(f, op); err == nil {
				p.write(stdout)
			}
		}
		if err != nil {
			status = sub.Complain(option.Failed, err)
		}
	}
	if len(operations(f, *only)) == 0 {
		return sub.Complain(option.BadUsage, fmt.Errorf("-op %[2]s: %[1]s has no results of it", sub.Operands[0], *only))
	}
	return status
}

// operations are those of a run, or the one that is wanted.
func operations(f *report.File, only string) (ops []string) {
	seen := map[string]bool{"barrier": true} // its curve is one point
	for _, r := range f.Results {
		if !seen[r.Op] && (only == "" || r.Op == only) {
			seen[r.Op] = true
			ops = append(ops, r.Op)
		}
	}
	return ops
}

// numbers reads a comma list.
func numbers(s string) (list []int, err error) {
	if s == "" {
		return nil, nil
	}
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of ranks", word)
		}
		list = append(list, n)
	}
	return list, nil
}

// write says what was found, and what it means for other jobs.
func (l *Links) write(w io.Writer, ranks []int, force bool) error {
	groups := ""
	if l.Split != "" {
		groups = fmt.Sprintf(" (a group of -split %s; the others called at the same time)", l.Split)
	}
	fmt.Fprintf(w, "# %s on %d ranks of %d hosts%s, %d measurements\n", l.Op, l.Ranks, l.Hosts, groups, len(l.Points))
	for _, part := range l.lines {
		where := ""
		switch {
		case len(l.lines) == 2 && part.from == 0:
			where = fmt.Sprintf("  messages up to %.4g bytes", l.Switch())
		case len(l.lines) == 2:
			where = "  longer ones"
		}
		fmt.Fprintf(w, "# alpha %.4g us (95 %% interval %.4g to %.4g)  1/beta %s%s\n", part.alpha.Estimate, max(part.alpha.Low, 0), part.alpha.High, bandwidth(part), where)
	}
	for _, n := range ranks {
		rows, err := l.To(n, force)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "#\n# EXTRAPOLATED from %d to %d ranks. Assumed: each size takes the algorithm it was measured with;\n"+
			"# as many ranks on a host; alpha and beta as they are, with no more contention than was measured.\n"+
			"# %12s  %-24s  %14s\n", l.Ranks, n, "size (B)", "algorithm", "time (us)")
		for _, p := range rows {
			fmt.Fprintf(w, "  %12.0f  %-24s  %14.2f  EXTRAPOLATED\n", p.Size, p.Algorithm, p.Time)
		}
	}
	return nil
}

// bandwidth writes beta as people know it.
func bandwidth(l line) string {
	gb := func(beta float64) string {
		if beta <= 0 {
			return "?"
		}
		return fmt.Sprintf("%.4g", 1/beta/1e3)
	}
	return fmt.Sprintf("%s GB/s (%s to %s)", gb(l.beta.Estimate), gb(l.beta.High), gb(l.beta.Low))
}
