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
const Usage = `bench launch runs a program as several ranks: inside an allocation of Slurm or PBS, or
with a host file, on all its nodes, through srun or mpiexec; else on this machine. Each
rank finds out who it is with ccl.Join. What they print comes line by line, with the
rank before it. When one fails, the others are ended.

  bench launch [flags] -- PROGRAM ARGS

  -np N           ranks (on this machine: the cores, at least 2, at most 8)
  -hosts N        on this machine: act as N hosts, with TCP between (1)
  -keep-going     let the others go on when one fails
`

// usage is Usage with the flags that all ways to start ranks share.
func usage() string {
	var b strings.Builder
	b.WriteString(Usage)
	for _, f := range option.JobFlags() {
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimRight("-"+f.Name+" "+f.Value, " "), f.Help)
	}
	b.WriteString("\nExit status: that of the first rank that failed; 2 for bad usage.\n")
	return b.String()
}

var errHelp = errors.New("help")

// parse reads what follows "launch".
func parse(args []string) (o Order, err error) {
	d := option.Default()
	o = Order{Job: option.DefaultJob(), NP: d.NP, ActAs: 1, Prefix: true}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			o.Program = args[i+1:]
			break
		}
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		if !strings.HasPrefix(args[i], "-") {
			return o, fmt.Errorf("%s: put -- before the program: bench launch -np %d -- %s", args[i], o.NP, strings.Join(args[i:], " "))
		}
		f := lookup(name)
		switch {
		case name == "h" || name == "help":
			return o, errHelp
		case f == nil:
			if n := option.Nearest(name, flagNames()); n != "" {
				return o, fmt.Errorf("-%s: no such flag; did you mean -%s? (-h lists them)", name, n)
			}
			return o, fmt.Errorf("-%s: no such flag (-h lists them)", name)
		case f.Value == "" && glued:
			return o, fmt.Errorf("%s: -%s takes no value", args[i], name)
		case f.Value != "" && !glued:
			if i++; i == len(args) {
				return o, fmt.Errorf("-%s: what? It takes a value: %s", name, f.Help)
			}
			value = args[i]
		}
		if err := f.set(&o, value); err != nil {
			return o, fmt.Errorf("-%s %s: %w", name, value, err)
		}
	}
	switch {
	case len(o.Program) == 0:
		return o, fmt.Errorf("which program? For example: bench launch -np %d -- ./train -epochs 3", o.NP)
	case o.ActAs > o.NP:
		return o, fmt.Errorf("-hosts %d: there are only %d processes to spread over them; give -np %d or more", o.ActAs, o.NP, o.ActAs)
	}
	path, err := exec.LookPath(o.Program[0])
	if err != nil {
		return o, fmt.Errorf("%s: no such program", o.Program[0])
	}
	o.Program = append([]string{path}, o.Program[1:]...)
	return o, nil
}

// flag is one flag of bench launch.
type flag struct {
	option.JobFlag
	set func(o *Order, s string) error
}

func flags() []flag {
	number := func(to func(*Order) *int) func(*Order, string) error {
		return func(o *Order, s string) error {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > option.MaxProcesses {
				return fmt.Errorf("it must be a whole number from 1 to %d", option.MaxProcesses)
			}
			*to(o) = n
			return nil
		}
	}
	np := number(func(o *Order) *int { return &o.NP })
	all := []flag{
		{option.JobFlag{Name: "np", Value: "N", Help: "a number of ranks"}, func(o *Order, s string) error { o.NPGiven = true; return np(o, s) }},
		{option.JobFlag{Name: "hosts", Value: "N", Help: "a number of hosts"}, number(func(o *Order) *int { return &o.ActAs })},
		{option.JobFlag{Name: "keep-going"}, func(o *Order, _ string) error { o.KeepGoing = true; return nil }},
	}
	for _, f := range option.JobFlags() {
		all = append(all, flag{f, func(o *Order, s string) error { return f.Set(&o.Job, s) }})
	}
	return all
}

func lookup(name string) *flag {
	for _, f := range flags() {
		if f.Name == name {
			return &f
		}
	}
	return nil
}

func flagNames() (names []string) {
	for _, f := range flags() {
		names = append(names, f.Name)
	}
	return names
}

// Command is bench launch: it returns the exit status.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, usage())
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bench launch:", err)
		return 2
	}
	p, err := o.Plan(ctx, os.Getenv)
	if err != nil {
		fmt.Fprintln(stderr, "bench launch:", err)
		return 2
	}
	if err = p.Run(ctx, stdout, stderr); err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bench launch:", err)
	var rank *boot.ExitError
	var launcher *Exit
	switch {
	case errors.As(err, &rank) && rank.Code > 0:
		return rank.Code
	case errors.As(err, &launcher) && launcher.Code > 0:
		return launcher.Code
	}
	return 1
}
