// Package trace says in words what went wrong in jobs that ran with GOCCL_TRACE=dir: which rank was late for which call,
// on which host, called from which line; in which call ranks differ; who waited for whom.
package trace

import (
	"fmt"
	"io"
)

const usage = `usage: bench trace dir

Reads what the processes of a job have written into dir, which GOCCL_TRACE named, and says in words what went
wrong: which ranks had not come to which call, in which call ranks differ, who waited for whom.
`

// Main is "bench trace": args are what follows it. It returns the exit status: 0 if the files were read, whatever they
// say.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		fmt.Fprint(stderr, usage)
		if len(args) == 1 {
			return 0
		}
		return 2
	}
	lines, err := readDir(args[0], func(s string) { fmt.Fprintln(stderr, "bench trace:", s) })
	if err != nil {
		fmt.Fprintln(stderr, "bench trace:", err)
		return 1
	}
	if len(lines) == 0 {
		fmt.Fprintf(stderr, "bench trace: the files in %s hold no line of a trace\n", args[0])
		return 1
	}
	for _, j := range group(lines) {
		j.explain(func(format string, a ...any) { fmt.Fprintf(stdout, format+"\n", a...) })
	}
	return 0
}
