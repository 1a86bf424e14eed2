package option

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/bench/internal/coll"
)

// Help is what -h prints: two screens of 45 lines, one flag a line.
func Help() string {
	var b strings.Builder
	b.WriteString(`bench measures collectives and checks their results. It starts its own ranks, or joins the job of
the launcher that started it.

  bench [flags]
`)
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
	{"ab", "two builds, or flags, or environments, in turns: which is faster?"},
	{"compare", "stored runs (-J): what has changed?"},
	{"fit", "a stored run: latency and bandwidth of the links; -extrapolate to more ranks"},
	{"plan", "what each way to spread a model's training would cost in communication"},
	{"trace", "what the flight recorders of a job's ranks have kept: who was where"},
	{"doctor", "is this machine, or this job, fit to run? Each check with its remedy"},
	{"launch", "any program as ranks: bench launch -np 4 -- PROGRAM ARGS"},
}

func commandNames() []string {
	var names []string
	for _, c := range Commands {
		names = append(names, c.Name)
	}
	return names
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
