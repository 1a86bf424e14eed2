package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/engine"
)

// Help is what -h prints: one screen of 40 lines and 80 columns.
func Help() string {
	var b strings.Builder
	b.WriteString(`bench measures collectives and checks their results. It starts its own ranks,
or joins the job of the launcher that started it.

  bench [flags]
`)
	for _, c := range Commands {
		fmt.Fprintf(&b, "  bench %-8s %s\n", c.Name, c.Help)
	}
	b.WriteString(`Flags, the most used:
  -op OP           collective, a comma list of them, or all (allreduce)
  -b SIZE -e SIZE  smallest and largest size in bytes: 8, 64K, 1G (8, 64M)
  -d TYPE -o OP    element type, operator (float, sum)
  -np N -t N       processes to start here; ranks in each
  -nodes N -ppn N  nodes of the allocation to use, ranks on each
  -backend NAME    engine: ` + strings.Join(engine.Names(), " ") + `
  -n N, -time T    timed iterations, or how long they go on (10ms)
  -J -csv -html F  write the results to a file as well
  -T T             give up when one line takes longer: 90s
  -h all           every flag
`)
	b.WriteString(strings.Join(prose.Wrap("Operations: "+strings.Join(coll.Names(), " ")+".", 80), "\n") + "\n")
	b.WriteString(examples)
	return b.String()
}

// examples, and what a run ends with.
const examples = `Examples:
  bench -op allreduce                         the curve from 8 B to 64 MiB
  bench -op all -np 3 -e 1M -d all -o all     check everything
  bench -op allreduce -hosts 2 -html r.html   as on two hosts; a report
  bench -plan zero3 -model gpt2-xl -np 4      what one training step sends
  mpiexec -n 8 bench -op allreduce -J o.json  ranks of a launcher; JSON, too
Exit status: 0 good, 1 wrong data or a failed run, 2 bad usage, 3 limit missed.
`

// HelpAll is what -h all prints: every flag on a line.
func HelpAll() string {
	var b strings.Builder
	b.WriteString("  bench [flags]\n")
	group := ""
	for _, f := range flags(new(Options)) {
		if f.help == "" {
			continue
		}
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		lines := prose.Wrap(f.help, 81)
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimRight("-"+f.name+" "+f.value, " "),
			strings.Join(lines, "\n"+strings.Repeat(" ", 18)))
	}
	b.WriteString(strings.Join(prose.Wrap("Operations: "+strings.Join(coll.Names(), " ")+".", 100), "\n") + "\n")
	b.WriteString(examples)
	return b.String()
}

// Command is a sub-command, for the help and the suggestions.
type Command struct{ Name, Help string }

// Commands are all but the benchmark itself.
var Commands = []Command{
	{"ab", "which of two builds, flags or environments is faster?"},
	{"compare", "what changed between stored runs (-J)?"},
	{"plan", "what each way to split a model's training would cost"},
	{"trace", "what each rank was doing, from the flight recorders"},
	{"doctor", "checks this machine or job, and suggests remedies"},
	{"launch", "runs any program as ranks: bench launch -np 4 -- PROGRAM ARGS"},
	{"help", "this text; bench help COMMAND has the flags of a command"},
	{"version", "the version of bench, and of Go"},
}

// KnownCommand refuses a word that is no sub-command.
func KnownCommand(word string) error {
	if slices.Contains(commandNames(), word) {
		return nil
	}
	return fmt.Errorf("help %s: %w", word, NoSuch("command", word, commandNames()))
}

func commandNames() []string { return prose.Names(Commands, func(c Command) string { return c.Name }) }
