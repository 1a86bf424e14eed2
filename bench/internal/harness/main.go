package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/bench/internal/compare"
	"github.com/goccl/goccl/bench/internal/doctor"
	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/predict"
	"github.com/goccl/goccl/bench/internal/trace"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

const (
	// joining is how long the ranks may take to find each other.
	joining = time.Minute
	// parting is how long an interrupted command, or rank, may take to end in good order.
	parting = 700 * time.Millisecond
	// leaving is the same for a command that ends other processes first, which takes ten seconds at most.
	leaving = 15 * time.Second
	// calledAs, before a name of nccl-tests, tells a rank what the program was called by: a rank is
	// started by the file's name.
	calledAs = "_as"
)

// Main is the program; it returns the exit status. argv begins with the name that it was called by.
func Main(argv []string) int {
	ctx, stop := untilSignalled()
	defer stop()
	patient, done := endsAnyway(ctx, os.Exit)
	defer done()

	name, theirs, err := option.Program(argv[0])
	args := argv[1:]
	if len(args) > 1 && args[0] == calledAs {
		name, args, theirs = args[1], args[2:], true
	}
	if len(args) > 0 && !theirs {
		if args, err = helped(args); err != nil {
			return complain(option.BadUsage, err)
		}
		switch args[0] {
		case "version", "-version", "--version":
			return said(func(stdout io.Writer) int { return version(args[1:], stdout) })
		case "launch":
			return launch.Command(ctx, patient, args[1:], os.Stdout, os.Stderr)
		case "doctor":
			return said(func(stdout io.Writer) int { return doctor.Command(ctx, args[1:], stdout, os.Stderr) })
		case "ab":
			return said(func(stdout io.Writer) int { return compare.AB(ctx, patient, args[1:], stdout, os.Stderr) })
		case "compare":
			return said(func(stdout io.Writer) int {
				return compare.Stored(args[1:], stdout, os.Stderr, doctor.Differences)
			})
		case "plan":
			return said(func(stdout io.Writer) int { return predict.Command(args[1:], stdout, os.Stderr) })
		case "trace":
			return said(func(stdout io.Writer) int { return trace.Command(args[1:], stdout, os.Stderr) })
		case "_exec":
			return complain(option.Failed, launch.Become(args[1:]))
		}
	}
	var o option.Options
	switch {
	case err != nil: // of the name
	case theirs:
		o, err = option.ParseAs(name, args, os.Getenv)
		args = append([]string{calledAs, name}, args...)
	default:
		o, err = option.Parse(args)
	}
	switch {
	case err != nil:
		return complain(option.BadUsage, err)
	case o.Help && theirs:
		return answer(option.HelpAs(name))
	case o.HelpAll:
		return answer(option.HelpAll())
	case o.Help:
		return answer(option.Help())
	}
	if _, err := environ.Check(os.Environ()); err != nil {
		return complain(option.BadUsage, err)
	}
	where, err := boot.Detect(os.Getenv)
	if err != nil {
		return complain(option.BadUsage, err)
	}
	tell(ctx, where, os.Stderr)
	p := plan{Options: o, where: where, launched: where.Launcher != "none" && !launch.Interactive(os.Getenv),
		ours: spawned()}
	p.chooseDevice()
	if p.launched {
		err = errors.Join(launch.Verify(os.Getenv), launch.Bind(os.Getenv, where))
	} else {
		err = p.choose(ctx, args)
	}
	if err != nil {
		return complain(option.BadUsage, err)
	}
	if err := p.check(); err != nil {
		if p.where.Rank > 0 && !p.ours {
			letRank0Say(ctx)
			return option.BadUsage
		}
		return complain(option.BadUsage, err)
	}
	if !p.launched && (p.NP > 1 || p.DryRun || !p.start.Local) {
		patient()
		defer brokenPipes()()
		return p.spawn(ctx, args)
	}
	return p.run(ctx, args)
}

// letRank0Say waits until rank 0 has had time to say what is wrong, which is the same on all ranks. Most launchers end
// the others as soon as one ends, and nobody would say it.
func letRank0Say(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
}

// endsAnyway ends the process, by exit, once a signal has come and the command has had parting to
// end in good order: whatever it waits for, a file without an end or a pipe that nobody writes to.
// A command that has other processes to end calls patient: it gets leaving. done is called when the
// command has ended.
func endsAnyway(ctx context.Context, exit func(int)) (patient func(), done func() bool) {
	limit := new(atomic.Int64)
	limit.Store(int64(parting))
	done = context.AfterFunc(ctx, func() {
		time.Sleep(time.Duration(limit.Load()))
		if environ.BenchParent.Get() == "" { // else that says so
			fmt.Fprintln(os.Stderr, "bench: interrupted")
		}
		exit(option.Failed)
	})
	return func() { limit.Store(int64(leaving)) }, done
}

// untilSignalled is a context that a signal ends. A signal that is ignored stays so: nohup wants it of SIGHUP, a shell
// of SIGINT for what it starts in the background.
func untilSignalled() (context.Context, context.CancelFunc) {
	var ends []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			ends = append(ends, s)
		}
	}
	if ends == nil { // Notify would take none for all
		return context.WithCancel(context.Background())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, ends...)
	go func() { // as NotifyContext, which does not say which signal has come
		select {
		case s := <-came:
			cancel(&launch.Signalled{By: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		signal.Stop(came)
	}
}

// helped turns help, help all and help COMMAND into what the flags say.
func helped(args []string) ([]string, error) {
	switch {
	case args[0] != "help":
		return args, nil
	case len(args) == 1 || args[1] == "version" || args[1] == "help":
		return []string{"-h"}, nil
	case args[1] == "all":
		return []string{"-h", "all"}, nil
	}
	return append(args[1:], "-h"), option.KnownCommand(args[1])
}

// said is the exit status of a command, which fails where standard output does not take what it says, as on a full
// disk.
func said(command func(stdout io.Writer) int) int {
	out := &sink{w: os.Stdout, broken: func() {}}
	status := command(out)
	if err := out.failed(); err != nil {
		return complain(cmp.Or(status, option.Failed), fmt.Errorf("standard output cannot be written: %w", err))
	}
	return status
}

// answer says a text.
func answer(text string) int {
	return said(func(stdout io.Writer) int {
		io.WriteString(stdout, text)
		return option.Good
	})
}

// version says which bench this is.
func version(args []string, stdout io.Writer) int {
	if len(args) > 0 {
		return complain(option.BadUsage, fmt.Errorf("version: %s: it takes no arguments", args[0]))
	}
	fmt.Fprintf(stdout, "bench of goccl %s, %s %s/%s, backends %s\n", ccl.Version, runtime.Version(), runtime.GOOS,
		runtime.GOARCH, strings.Join(ccl.Backends(), ", "))
	return option.Good
}

func complain(status int, err error) int {
	text := err.Error()
	if !strings.HasPrefix(text, "bench: ") {
		text = "bench: " + text
	}
	fmt.Fprintln(os.Stderr, text)
	return status
}

// tellIdle says that an accelerator lies idle.
func tellIdle(w io.Writer, args []string) {
	if h := machine.Hint("/", ccl.Backends(), args); h != "" {
		fmt.Fprintln(w, h)
	}
}
