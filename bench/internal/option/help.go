package option

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
)

const opening = `bench measures collectives, and checks their results. It starts its own ranks,
or joins the job of the launcher that started it.

  bench [flags]
`

// brief are the flags that most runs do with, and what Help says of them in the rest of a line of 80 columns.
var brief = []struct{ name, help string }{
	{"op", "allreduce or another collective, a list, or all (allreduce)"},
	{"b", "smallest size in bytes; K, M, G are powers of 1024 (8)"},
	{"e", "largest size (64M)"},
	{"f", "multiply the size by N, line by line (2)"},
	{"d", "element type, a list, or all (float)"},
	{"o", "operator, a list, or all: sum prod min max avg (sum)"},
	{"n", "timed iterations (20, and as many as take 10ms)"},
	{"c", "iterations whose data are checked; 0 for none (1)"},
	{"T", "give up when one line takes longer: 90s; 0: never (0)"},
	{"backend", "cpu mpi nccl oneccl rccl, or a list (the device here; cpu)"},
	{"np", "processes to start here (the cores, at least 2, at most 8)"},
	{"t", "ranks per process, as goroutines (1)"},
	{"hosts", "let them act as N hosts, with TCP between (1)"},
	{"v", "end each line with the algorithm that was chosen"},
	{"J", "write the results as JSON, too"},
	{"html", "write a report of one file, with curves"},
	{"q", "no comments, no progress: the table and what went wrong"},
	{"h", "this text; -h all: every flag"},
}

// Help is what -h prints: one screen of 40 lines and 80 columns.
func Help() string {
	var b strings.Builder
	b.WriteString(opening)
	for _, c := range Commands {
		fmt.Fprintf(&b, "  bench %-8s %s\n", c.Name, c.Help)
	}
	b.WriteString("  bench help     of a command, such as bench help fit; bench version\n\n")
	for _, f := range brief {
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimRight("-"+f.name+" "+lookup(f.name).value, " "), f.help)
	}
	b.WriteString(`
Examples:
  bench -op allreduce                           the curve from 8 B to 64 MiB
  bench -op all -np 3 -e 1M -d all -o all       check all that can be checked
  bench -np 4 -hosts 2 -html r.html             as on two hosts; with a report
  mpiexec -n 8 bench -op allreduce -J out.json  ranks of a launcher; JSON, too
`)
	return b.String()
}

// Version is what "bench version" prints: the release, the toolchain and platform, and what is compiled in.
func Version() string {
	return fmt.Sprintf("goccl %s, %s %s/%s, backends: %s\n", ccl.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(ccl.Backends(), " "))
}

// HelpAll is what -h all prints: two screens of 45 lines and 100 columns, one flag a line.
func HelpAll() string {
	var b strings.Builder
	b.WriteString(opening)
	for _, c := range Commands {
		fmt.Fprintf(&b, "  bench %-8s %s\n", c.Name, c.Help)
	}
	group := ""
	for _, f := range flags() {
		if f.help == "" {
			continue
		}
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		lines := wrap(f.help, 81)
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimRight("-"+f.name+" "+f.value, " "), strings.Join(lines, "\n"+strings.Repeat(" ", 18)))
	}
	b.WriteString(strings.Join(wrap("Operations: "+strings.Join(coll.Names(), " ")+".", 100), "\n") + "\n")
	b.WriteString(`Examples:
  bench -op allreduce                              the curve from 8 B to 64 MiB
  bench -op all -np 3 -e 1M -d all -o all          check everything that can be checked
  bench -op allreduce -np 4 -hosts 2 -html r.html  as on two hosts, TCP between; a report to look at
  bench -plan zero3 -model gpt2-xl -d bf16 -np 4   what one training step sends
  mpiexec -n 8 bench -op allreduce -J out.json     ranks of a launcher; JSON, too
Exit status: 0 good, 1 wrong data or a failed run, 2 bad usage, 3 a limit missed.
`)
	return b.String()
}

// Command is a sub-command, for the help and the suggestions.
type Command struct{ Name, Help string }

// Commands are all but the benchmark itself.
var Commands = []Command{
	{"ab", "two builds, or flags, or environments: which is faster?"},
	{"compare", "stored runs (-J): what has changed?"},
	{"fit", "a stored run: latency and bandwidth of links, for more ranks"},
	{"plan", "what each way to spread a training would cost in communication"},
	{"trace", "what the ranks' flight recorders have kept: who was where"},
	{"doctor", "is this machine, or this job, fit to run? What to mend"},
	{"launch", "any program as ranks: bench launch -np 4 -- PROGRAM ARGS"},
}

func commandNames() []string {
	var names []string
	for _, c := range Commands {
		names = append(names, c.Name)
	}
	return names
}

// HelpFor is the command line in whose place "bench help args" stands.
func HelpFor(args []string) ([]string, error) {
	switch {
	case len(args) == 0:
		return []string{"-h"}, nil
	case len(args) > 1:
		return nil, fmt.Errorf("help %s: of one command at a time: %s", strings.Join(args, " "), strings.Join(commandNames(), " "))
	case args[0] == "all":
		return []string{"-h", "all"}, nil
	case slices.Contains(commandNames(), args[0]):
		return []string{args[0], "-h"}, nil
	}
	return nil, unknown("help "+args[0], "command", Nearest(args[0], commandNames()), "there are "+strings.Join(commandNames(), " "))
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
