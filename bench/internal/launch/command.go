package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl/boot"
)

// Usage is what bench launch -h prints.
const Usage = `bench launch runs a program as several ranks on this machine. Each finds out who it
is with ccl.Join. What they print comes line by line, with the rank before it. When
one fails, the others are ended.

  bench launch [-np N] [-hosts N] [-keep-going] -- PROGRAM ARGS

  -np N         ranks (the cores, at least 2, at most 8)
  -hosts N      let them act as N hosts, with TCP between (1)
  -keep-going   let the others go on when one fails

Exit status: that of the first rank that failed; 2 for bad usage.
`

// job is the command line of bench launch.
type job struct {
	np, hosts int
	keepGoing bool
	program   []string
	path      string // of program[0]
}

var errHelp = errors.New("help")

// parse reads what follows "launch".
func parse(args []string) (j job, err error) {
	d := option.Default()
	j = job{np: d.NP, hosts: d.Hosts}
	known := []string{"np", "hosts", "keep-going"}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			j.program = args[i+1:]
			break
		}
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return j, fmt.Errorf("%s: put -- before the program: bench launch -np %d -- %s", args[i], j.np, strings.Join(args[i:], " "))
		case name == "h" || name == "help":
			return j, errHelp
		case name == "keep-going" && !glued:
			j.keepGoing = true
			continue
		case name != "np" && name != "hosts":
			if n := option.Nearest(name, known); n != "" {
				return j, fmt.Errorf("-%s: no such flag; did you mean -%s? (-h lists them)", name, n)
			}
			return j, fmt.Errorf("-%s: no such flag (-h lists them)", name)
		}
		if !glued {
			if i++; i == len(args) {
				return j, fmt.Errorf("-%s: what? It takes a number", name)
			}
			value = args[i]
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > option.MaxProcesses {
			return j, fmt.Errorf("-%s %s: it must be a whole number from 1 to %d", name, value, option.MaxProcesses)
		}
		if name == "np" {
			j.np = n
		} else {
			j.hosts = n
		}
	}
	switch {
	case len(j.program) == 0:
		return j, fmt.Errorf("which program? For example: bench launch -np %d -- ./train -epochs 3", j.np)
	case j.hosts > j.np:
		return j, fmt.Errorf("-hosts %d: there are only %d processes to spread over them; give -np %d or more", j.hosts, j.np, j.hosts)
	}
	path, err := exec.LookPath(j.program[0])
	if err != nil {
		return j, fmt.Errorf("%s: no such program", j.program[0])
	}
	j.path = path
	return j, nil
}

// Command is bench launch: it returns the exit status.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	j, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, Usage)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bench launch:", err)
		return 2
	}
	if j.hosts == 1 {
		j.hosts = 0 // this one, as it is
	}
	err = boot.Spawn(ctx, boot.Command{
		N: j.np, Path: j.path, Args: j.program[1:], Env: os.Environ(), Hosts: j.hosts,
		Stdout: stdout, Stderr: stderr, Prefix: true, KeepGoing: j.keepGoing,
	})
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bench launch:", err)
	var exit *boot.ExitError
	if errors.As(err, &exit) && exit.Code > 0 {
		return exit.Code
	}
	return 1
}
