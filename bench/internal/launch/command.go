package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

const about = `bench launch runs a program as several ranks: inside an allocation of Slurm or PBS, or
with a host file, on all its nodes, through srun or mpiexec; else on this machine. Each
rank learns its number from ccl.Join. Output is passed on line by line, with the rank
before each line. When one rank fails, bench ends the others.

  bench launch [flags] -- PROGRAM ARGS
`

const end = `The input of bench launch is that of rank 0.

Exit status: that of the rank that failed; with -keep-going 0 if no
fewer ranks ended well than failed; with -spares or -restart 0 if as many
ranks as -np says ended well, spares that nobody needed not counted; 2 for
bad usage; 128 and its number, such as 143, if a signal ended bench launch.`

// parse reads what follows "launch". Without an order the command is over, with that status.
func parse(args []string, stdout, stderr io.Writer) (o *Order, status int) {
	o = &Order{Job: option.DefaultJob(), NP: option.Default().NP, ActAs: 1, Prefix: true, Spares: unsaid}
	sub := option.NewSub("launch", about, end, stdout, stderr)
	sub.Ranks(&o.NP, &o.NPGiven)
	sub.Count(&o.ActAs, "hosts", "on this machine: act as N hosts, with TCP between them (1)", 1, option.MaxProcesses)
	keepGoing := sub.Bool("keep-going", "keep the other ranks running when one fails")
	sub.Count(&o.Spares, "spares", "start N more ranks, which wait to take the place of one that is lost (what GOCCL_SPARES says, else 0); implies -keep-going", 0, option.MaxProcesses)
	sub.Count(&o.Restart, "restart", "start a rank that dies again, at most N times in a row (0); it waits in ccl.Join until the others call ccl.Grow; implies -keep-going (on this machine)", 0, option.MaxProcesses)
	sub.Func("hall", "HOST:PORT", "listen at HOST:PORT for processes that start late (with -restart: a free port; on this machine)", func(addr string) error {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return errors.New("it takes host:port, such as 127.0.0.1:29800, or :29800 for all interfaces")
		}
		o.Hall = addr
		return nil
	})
	sub.Func("x", "NAME=VALUE", "set NAME=VALUE for the ranks, which also have all of this environment; may be given again", o.set)
	sub.Func("logs", "DIR", "also write each rank's output to a file DIR/rank-N.log (on this machine)",
		func(dir string) error {
			if o.Logs = dir; dir == "" {
				return errors.New("give a directory")
			}
			return nil
		})
	sub.Job(&o.Job)
	sub.Stray = func(rest []string) error {
		return fmt.Errorf("%s: put -- before the program: bench launch -np %d -- %s", rest[0], o.NP, strings.Join(rest, " "))
	}
	if goOn, status := sub.Parse(args); !goOn {
		return nil, status
	}
	o.Program = sub.After
	if len(o.Program) == 0 {
		return nil, sub.Complain(option.BadUsage,
			fmt.Errorf("it needs a program: bench launch -np %d -- ./train -epochs 3", o.NP))
	}
	if err := o.spare(); err != nil {
		return nil, sub.Complain(option.BadUsage, err)
	}
	o.KeepGoing = *keepGoing || o.Spares > 0 || o.Restart > 0
	if err := option.FitsHosts(o.ActAs, o.NP, "process", "processes"); err != nil {
		return nil, sub.Complain(option.BadUsage, err)
	}
	path, err := exec.LookPath(o.Program[0])
	if err != nil {
		return nil, sub.Complain(option.BadUsage, noProgram(o.Program[0], err))
	}
	o.Program = append([]string{path}, o.Program[1:]...)
	return o, option.Good
}

// unsaid is the number of spares of an Order whose command line names none.
const unsaid = -1

// spare settles how many ranks wait: as the variable that the ranks read says, unless a flag does.
// Either way the launcher knows of them, and the ranks agree with it.
func (o *Order) spare() error {
	set := func(name string) string { // as the ranks will have it
		for _, e := range slices.Backward(o.Env) {
			if n, value, _ := strings.Cut(e, "="); n == name {
				return value
			}
		}
		return os.Getenv(name)
	}
	if o.Spares == unsaid {
		n, err := environ.Spares.From(set)
		if err != nil {
			return err
		}
		if o.Spares = max(n, 0); o.Spares > option.MaxProcesses {
			return fmt.Errorf("%s: it must be at most %d", environ.Spares.Set(strconv.Itoa(n)), option.MaxProcesses)
		}
	}
	if o.Spares > 0 || environ.Spares.Text(set) != "" {
		o.Env = append(o.Env, environ.Spares.Set(strconv.Itoa(o.Spares)))
	}
	o.NP += o.Spares
	return nil
}

// set takes the value of -x.
func (o *Order) set(assignment string) error {
	name, _, ok := strings.Cut(assignment, "=")
	switch {
	case !ok || name == "":
		return errors.New("it takes NAME=VALUE, such as OMP_NUM_THREADS=1")
	case slices.Contains(rankVars, name):
		return fmt.Errorf("%s says which rank this is, and each rank gets its own", name)
	}
	o.Env = append(o.Env, assignment)
	return nil
}

// Command is bench launch: it returns the exit status. It calls begins when there will be processes to end.
func Command(ctx context.Context, begins func(), args []string, stdout, stderr io.Writer) int {
	o, status := parse(args, stdout, stderr)
	if o == nil {
		return status
	}
	if _, err := environ.Check(append(os.Environ(), o.Env...)); err != nil {
		fmt.Fprintln(stderr, "bench launch:", err)
		return option.BadUsage
	}
	o.Stdin = os.Stdin
	begins()
	p, err := o.Plan(ctx, os.Getenv)
	planned := err == nil
	if planned {
		err = p.Run(ctx, stdout, stderr)
	}
	by := (*Signalled)(nil)
	switch {
	case errors.As(context.Cause(ctx), &by): // whatever else has come of it
		fmt.Fprintln(stderr, "bench launch:", by)
		return by.status()
	case !planned:
		fmt.Fprintln(stderr, "bench launch:", err)
		return option.BadUsage
	case err == nil:
		return option.Good
	}
	fmt.Fprintln(stderr, "bench launch:", told(err))
	var rank *boot.ExitError
	var launcher *Exit
	switch {
	case errors.As(err, &rank) && (o.Spares > 0 || o.Restart > 0):
		if rank.Well-rank.Unused >= o.NP-o.Spares {
			return option.Good // lost ranks were replaced, or came back
		}
		return max(rank.Code, 1)
	case errors.As(err, &rank) && o.KeepGoing && rank.Well > 0 && rank.Well >= rank.Failed:
		return option.Good // the survivors have done the work
	case errors.As(err, &rank) && rank.Code > 0:
		return rank.Code
	case errors.As(err, &launcher) && launcher.Code > 0:
		return launcher.Code
	case errors.Is(err, boot.Argument):
		return option.BadUsage
	}
	return 1
}

// Signalled says that a signal has ended this process, and with it the ranks. It is the cause of its context's end.
type Signalled struct{ By os.Signal }

func (s *Signalled) Error() string { return fmt.Sprintf("ended by a signal: %v", s.By) }

// status is the exit status that shells give a process that a signal has ended.
func (s *Signalled) status() int {
	if n, ok := s.By.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return option.Failed
}

// told is err, and what became of the other ranks.
func told(err error) string {
	var rank *boot.ExitError
	again := ""
	if errors.As(err, &rank) && rank.Restarted > 0 {
		again = "; ranks were started again " + times(rank.Restarted)
	}
	switch {
	case rank == nil:
	case rank.Stopped > 0:
		return fmt.Sprintf("%v; %s ended because of it (with -keep-going the others go on, which a program that calls Shrink needs)", err, prose.Count(rank.Stopped, "other rank"))
	case rank.Failed > 1 && rank.Well > 0:
		return fmt.Sprintf("%v%s; %d ranks failed in all, and %d ended well%s", err, again, rank.Failed, rank.Well,
			unused(rank))
	case rank.Well > 0 && again != "":
		return fmt.Sprintf("%v%s; %d ended well%s", err, again, rank.Well, unused(rank))
	case rank.Well > 0:
		return fmt.Sprintf("%v; %s ended well%s", err, prose.Count(rank.Well, "other rank"), unused(rank))
	}
	return err.Error() + again
}

// unused says how many of the ranks that ended well have done none of the work.
func unused(e *boot.ExitError) string {
	switch e.Unused {
	case 0:
		return ""
	case 1:
		return ", 1 of them a spare that nobody needed"
	}
	return fmt.Sprintf(", %d of them spares that nobody needed", e.Unused)
}

// times reads like: 3 times
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// noProgram says why exec.LookPath does not take name.
func noProgram(name string, err error) error {
	info, statErr := os.Stat(name)
	switch {
	case statErr == nil && info.IsDir():
		return fmt.Errorf("%s is a directory, not a program", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable: chmod +x %[1]s", name)
	case statErr == nil && filepath.Base(name) == name:
		return fmt.Errorf("%s: no such program in PATH; the one that is here is ./%[1]s", name)
	}
	return fmt.Errorf("%s: no such program", name)
}
