// Package trace says in words what went wrong in jobs that ran with GOCCL_TRACE=dir: which rank was
// late for which call, on which host, called from which line; in which call ranks differ; who
// waited for whom. It also draws their last calls as a timeline.
package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/internal/files"
)

const about = `bench trace reads what the processes of a job wrote into DIR, which GOCCL_TRACE named, and
says in words what went wrong: which ranks had not reached which call, in which call the
ranks differ, and which rank waited for which.

  bench trace [-perfetto FILE] DIR
`

const end = `Exit status: 0 the files were read, whatever they say, 1 failed, 2 bad usage.`

// Command is bench trace.
func Command(args []string, stdout, stderr io.Writer) int {
	sub := option.NewSub("trace", about, end, stdout, stderr)
	to := sub.String("perfetto", "FILE", "",
		"also write the last calls of all ranks as a timeline to FILE, for ui.perfetto.dev")
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	if len(sub.Operands) != 1 {
		return sub.Complain(option.BadUsage, errors.New("it needs the directory that GOCCL_TRACE named: bench trace dir"))
	}
	dir := sub.Operands[0]
	lines, err := readDir(dir, func(s string) { fmt.Fprintln(stderr, "bench trace:", s) })
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("the files in %s contain no trace", dir)
	}
	if err != nil {
		return sub.Complain(option.BadUsage, err)
	}
	jobs := group(lines)
	if *to != "" {
		if err := save(*to, picture(jobs)); err != nil {
			return sub.Complain(option.BadUsage, fmt.Errorf("-perfetto: %w", err))
		}
	}
	for _, j := range jobs {
		j.explain(func(format string, a ...any) { fmt.Fprintf(stdout, format+"\n", a...) })
	}
	return option.Good
}

// save writes a timeline to a file.
func save(name string, t *timeline) error {
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(t.write(f), f.Close())
}
