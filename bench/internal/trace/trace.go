// Package trace says in words what went wrong in jobs that ran with GOCCL_TRACE=dir: which rank was late for which call,
// on which host, called from which line; in which call ranks differ; who waited for whom.
package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccl/goccl/bench/internal/option"
)

const about = `bench trace reads what the processes of a job wrote into DIR, which GOCCL_TRACE named, and
says in words what went wrong: which ranks had not reached which call, in which call the
ranks differ, and which rank waited for which.

  bench trace DIR
`

const end = `Exit status: 0 the files were read, whatever they say, 1 failed, 2 bad usage.`

// Command is bench trace.
func Command(args []string, stdout, stderr io.Writer) int {
	sub := option.NewSub("trace", about, end, stdout, stderr)
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
		return sub.Complain(option.Failed, err)
	}
	for _, j := range group(lines) {
		j.explain(func(format string, a ...any) { fmt.Fprintf(stdout, format+"\n", a...) })
	}
	return option.Good
}
