package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

const about = `bench doctor looks at what a job runs on, on every rank: launcher, nodes, libraries,
devices, interfaces and routes both ways, limits, binding, environment. It starts its
ranks as bench does: inside an allocation through srun or mpiexec, else on this machine.
Each finding is ok, a warning or an error, with the remedy.

  bench doctor [flags]

  -np N           ranks (on this machine: the cores, at least 2, at most 8)
  -json           all of it as JSON
`

// Help is what bench doctor -h prints.
func Help() string {
	var b strings.Builder
	b.WriteString(about)
	for _, f := range option.JobFlags() {
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimRight("-"+f.Name+" "+f.Value, " "), f.Help)
	}
	b.WriteString("\nExit status: 0, 1 if there is an error, 2 for bad usage.\n")
	return b.String()
}

var errHelp = errors.New("help")

// parse reads what follows "doctor".
func parse(args []string) (o launch.Order, asJSON bool, err error) {
	d := option.Default()
	o = launch.Order{Job: option.DefaultJob(), NP: d.NP, ActAs: 1, Self: true}
	o.Bind = "none" // as the launcher has bound them
	known := []string{"np", "json"}
	for _, f := range option.JobFlags() {
		known = append(known, f.Name)
	}
	for i := 0; i < len(args); i++ {
		name, value, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		at := slices.IndexFunc(option.JobFlags(), func(f option.JobFlag) bool { return f.Name == name })
		takes := name == "np" || at >= 0 && option.JobFlags()[at].Value != ""
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return o, false, fmt.Errorf("%s: an argument without a flag (-h lists the flags)", args[i])
		case name == "h" || name == "help":
			return o, false, errHelp
		case !slices.Contains(known, name):
			if n := option.Nearest(name, known); n != "" {
				return o, false, fmt.Errorf("-%s: no such flag; did you mean -%s? (-h lists them)", name, n)
			}
			return o, false, fmt.Errorf("-%s: no such flag (-h lists them)", name)
		case takes && !glued:
			if i++; i == len(args) {
				return o, false, fmt.Errorf("-%s: what? It takes a value", name)
			}
			value = args[i]
		case !takes && glued:
			return o, false, fmt.Errorf("%s: -%s takes no value", args[i], name)
		}
		switch {
		case name == "json":
			asJSON, o.Quiet = true, true
		case name == "np":
			n, aerr := strconv.Atoi(value)
			if aerr != nil || n < 1 || n > option.MaxProcesses {
				return o, false, fmt.Errorf("-np %s: it must be a whole number from 1 to %d", value, option.MaxProcesses)
			}
			o.NP, o.NPGiven = n, true
		default:
			if err := option.JobFlags()[at].Set(&o.Job, value); err != nil {
				return o, false, fmt.Errorf("-%s %s: %w", name, value, err)
			}
		}
	}
	return o, asJSON, nil
}

// Command is bench doctor: it returns the exit status.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	complain := func(status int, err error) int {
		fmt.Fprintln(stderr, "bench: doctor:", err)
		return status
	}
	o, asJSON, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		io.WriteString(stdout, Help())
		return 0
	case err != nil:
		return complain(2, err)
	}
	where, err := boot.Detect(os.Getenv)
	if err != nil {
		return complain(2, err)
	}
	if where.Launcher == "none" || launch.Interactive(os.Getenv) {
		return start(ctx, o, args, stdout, stderr, complain)
	}
	if err := launch.Verify(os.Getenv); err != nil {
		return complain(2, err)
	}
	status, err := examine(ctx, where, asJSON, stdout)
	if err != nil {
		return complain(1, err)
	}
	return status
}

// start starts the ranks that look.
func start(ctx context.Context, o launch.Order, args []string, stdout, stderr io.Writer, complain func(int, error) int) int {
	self, err := os.Executable()
	if err != nil {
		return complain(1, fmt.Errorf("finding this program, to start it as the ranks: %w", err))
	}
	o.Program = append([]string{self, "doctor"}, args...)
	p, err := o.Plan(ctx, os.Getenv)
	if err != nil {
		return complain(2, err)
	}
	err = p.Run(ctx, stdout, stderr)
	var rank *boot.ExitError
	var launcher *launch.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &rank) && rank.Code > 0 && rank.Code <= 2:
		return rank.Code // it has said why
	case errors.As(err, &launcher) && launcher.Said:
		return 1
	case errors.As(err, &launcher) && launcher.Code == 1:
		return 1 // rank 0 has told of errors
	}
	return complain(1, fmt.Errorf("the ranks could not be started, so nothing was looked at: %w", err))
}

// joining is how long ranks may take to meet, and to try all routes.
const joining = time.Minute

// examine looks at this rank, and on rank 0 tells about all.
func examine(ctx context.Context, where boot.Launch, asJSON bool, stdout io.Writer) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	b, mpi, done, err := meet(ctx)
	if err != nil {
		return 1, err
	}
	defer done()
	launch.Joined(os.Getenv, where)
	e := &exam{launcher: where.Launcher}
	mine := look(where, launch.Sum(), os.Environ())
	mine.MPI = mpi
	if err := e.gather(ctx, b, mine); err != nil {
		return 1, err
	}
	if where.Rank > 0 {
		return 0, nil
	}
	e.diagnose()
	if asJSON {
		err = e.writeJSON(stdout)
	} else {
		err = e.write(stdout)
	}
	if e.count(failure) > 0 {
		status = 1
	}
	return status, err
}

// gather brings together what the ranks see; then the hosts try to reach each other.
func (e *exam) gather(ctx context.Context, b ccl.Bootstrap, mine *facts) error {
	all, err := exchange(ctx, b, mine)
	if err != nil {
		return err
	}
	e.ranks = all
	var at meeting
	if mine.Leader && len(e.leaders()) > 1 {
		port, done, err := listen()
		defer done()
		if err != nil {
			return fmt.Errorf("opening a port, to try routes: %w", err)
		}
		at = meeting{Rank: mine.Rank, Host: mine.Host, Port: port}
		for _, i := range mine.Interfaces {
			at.Addrs = append(at.Addrs, i.Addrs...)
		}
	}
	places, err := exchange(ctx, b, &at)
	if err != nil {
		return err
	}
	var hosts []meeting
	for _, m := range places {
		if m.Port != "" {
			hosts = append(hosts, *m)
		}
	}
	var mineTried []route
	if mine.Leader {
		mineTried = try(ctx, at, hosts)
	}
	tried, err := exchange(ctx, b, &mineTried)
	for _, r := range tried {
		e.routes = append(e.routes, *r...)
	}
	return err
}

// exchange gives each rank what every rank has.
func exchange[T any](ctx context.Context, b ccl.Bootstrap, mine *T) ([]*T, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	packed, err := b.AllGather(ctx, text)
	if err != nil {
		return nil, err
	}
	all := make([]*T, len(packed))
	for r, p := range packed {
		all[r] = new(T)
		if err := json.Unmarshal(p, all[r]); err != nil {
			return nil, fmt.Errorf("rank %d described itself in a way that this rank cannot read (another build?): %w", r, err)
		}
	}
	return all, nil
}
