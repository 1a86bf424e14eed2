package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/plain"
)

const about = `bench doctor checks what a job runs on, on every rank: launcher, nodes, libraries,
devices, interfaces and routes both ways, limits, binding, environment. It starts its
ranks as bench does: inside an allocation through srun or mpiexec, else on this machine.
Each finding is ok, a warning or an error, with the remedy.

  bench doctor [flags]
`

const end = `Exit status: 0, 1 if there is an error, 2 for bad usage.`

// Command is bench doctor: it returns the exit status.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := launch.Order{Job: option.DefaultJob(), NP: option.Default().NP, ActAs: 1, Self: true}
	o.Bind = "none" // as the launcher has bound them
	sub := option.NewSub("doctor", about, end, stdout, stderr)
	sub.Ranks(&o.NP, &o.NPGiven)
	asJSON := sub.Bool("json", "print everything as JSON")
	sub.Job(&o.Job)
	sub.Stray = option.NoOperands
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	o.Quiet = o.Quiet || *asJSON
	where, err := boot.Detect(os.Getenv)
	if err != nil {
		return sub.Complain(option.BadUsage, err)
	}
	if where.Launcher == "none" || launch.Interactive(os.Getenv) {
		return start(ctx, sub, o, args, stdout, stderr)
	}
	if err := launch.Verify(os.Getenv); err != nil {
		return sub.Complain(option.BadUsage, err)
	}
	status, err := examine(ctx, where, *asJSON, stdout)
	if err != nil {
		return sub.Complain(option.Failed, err)
	}
	return status
}

// start starts the ranks that look.
func start(ctx context.Context, sub *option.Sub, o launch.Order, args []string, stdout, stderr io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		return sub.Complain(option.Failed, fmt.Errorf("finding this program, to start it as the ranks: %w", err))
	}
	o.Program = append([]string{self, "doctor"}, args...)
	p, err := o.Plan(ctx, os.Getenv)
	if err != nil {
		return sub.Complain(option.BadUsage, err)
	}
	err = p.Run(ctx, stdout, stderr)
	var rank *boot.ExitError
	var launcher *launch.Exit
	switch {
	case err == nil:
		return option.Good
	case errors.As(err, &rank) && rank.Code > option.Good && rank.Code <= option.BadUsage:
		return rank.Code // it has said why
	case errors.As(err, &launcher) && launcher.Said:
		return option.Failed
	case errors.As(err, &launcher) && launcher.Code == option.Failed:
		return option.Failed // rank 0 has told of errors
	}
	status := option.Failed
	if errors.Is(err, boot.Argument) {
		status = option.BadUsage
	}
	return sub.Complain(status, fmt.Errorf("the ranks could not be started, so nothing was checked: %w", err))
}

// joining is how long ranks may take to meet, and to try all routes.
const joining = time.Minute

// examine looks at this rank, and on rank 0 tells about all.
func examine(ctx context.Context, where boot.Launch, asJSON bool, stdout io.Writer) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	b, mpi, done, err := meet(ctx)
	if err != nil {
		return option.Failed, err
	}
	defer done()
	launch.Joined(os.Getenv, where)
	e := &exam{launcher: where.Launcher}
	mine := look(where, launch.Sum(), os.Environ())
	mine.MPI = mpi
	if err := e.gather(ctx, b, mine); err != nil {
		return option.Failed, err
	}
	if where.Rank > 0 {
		return option.Good, nil
	}
	e.diagnose()
	if asJSON {
		err = e.writeJSON(stdout)
	} else {
		err = e.write(stdout)
	}
	if e.count(failure) > 0 {
		status = option.Failed
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
		if err := plain.Unmarshal(p, all[r]); err != nil {
			return nil, fmt.Errorf("rank %d described itself in a way that this rank cannot read (another build?): %w", r, err)
		}
	}
	return all, nil
}
