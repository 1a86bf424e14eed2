package option

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/bench/internal/coll"
)

// Help is what -h prints.
func Help() string {
	var b strings.Builder
	b.WriteString(`bench measures collectives and checks their results. It starts its own ranks on
this machine, or joins the job of the launcher that started it.

  bench [flags]
  bench launch -np 4 [-hosts 2] [-keep-going] -- PROGRAM ARGS     any program as ranks
`)
	group := ""
	for _, f := range flags() {
		if f.help == "" {
			continue
		}
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		lines := wrap(f.help, 64)
		fmt.Fprintf(&b, "  %-12s %s\n", strings.TrimRight("-"+f.name+" "+f.value, " "), strings.Join(lines, "\n"+strings.Repeat(" ", 15)))
	}
	b.WriteString("\n" + strings.Join(wrap("Operations: "+strings.Join(coll.Names(), " ")+".", 80), "\n") + "\n")
	b.WriteString(`
Examples:
  bench -op allreduce                           the curve from 8 B to 64 MiB
  bench -op all -np 3 -e 1M -d all -o all       check everything that can be checked
  bench -op allreduce,alltoall -np 4 -hosts 2   as on two hosts, TCP between
  bench -op broadcast -np 1 -t 4 -v             goroutine ranks; name the algorithms
  mpiexec -n 8 bench -op allreduce -J out.json  ranks of a launcher; JSON, too

Exit status: 0 good, 1 wrong data or a failed run, 2 bad usage.
`)
	return b.String()
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
