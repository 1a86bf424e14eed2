package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl/boot"
)

// The exit statuses.
const (
	good   = 0
	failed = 1
	usage  = 2
)

const (
	// ours, in the environment, tells a rank that bench itself started it; its value
	// is terminal if progress is wanted.
	ours     = "GOCCL_BENCH_PARENT"
	terminal = "terminal"

	// joining is how long the ranks may take to find each other.
	joining = time.Minute
	// parting is how long an interrupted rank may take to end in good order.
	parting = 700 * time.Millisecond
)

// compiled are the tags of the vendor engines that this binary has.
var compiled []string

// Main is the program; it returns the exit status.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if len(args) > 0 && args[0] == "launch" {
		return launch.Command(ctx, args[1:], os.Stdout, os.Stderr)
	}
	o, err := option.Parse(args)
	switch {
	case err != nil:
		return complain(usage, err)
	case o.Help:
		io.WriteString(os.Stdout, option.Help())
		return good
	}
	where, err := boot.Detect(os.Getenv)
	if err != nil {
		return complain(usage, err)
	}
	p := plan{Options: o, where: where, launched: where.Launcher != "none", ours: os.Getenv(ours) != ""}
	if err := p.check(); err != nil {
		if p.where.Rank > 0 && !p.ours {
			return usage // rank 0 says the same
		}
		return complain(usage, err)
	}
	if !p.launched && p.NP > 1 {
		return p.spawn(ctx, args)
	}
	defer context.AfterFunc(ctx, func() {
		time.Sleep(parting)
		os.Exit(failed)
	})()
	return p.run(ctx, args)
}

func complain(status int, err error) int {
	text := err.Error()
	if !strings.HasPrefix(text, "bench: ") {
		text = "bench: " + text
	}
	fmt.Fprintln(os.Stderr, text)
	return status
}

// spawn runs this program as the ranks.
func (p *plan) spawn(ctx context.Context, args []string) int {
	hint(args)
	self, err := os.Executable()
	if err != nil {
		return complain(failed, fmt.Errorf("finding this program, to start it as the ranks: %w", err))
	}
	mark := ours + "=yes"
	if isTerminal(os.Stderr) {
		mark = ours + "=" + terminal
	}
	sc := newScreen(os.Stderr)
	hosts := p.Hosts
	if hosts == 1 {
		hosts = 0 // this one, as it is
	}
	err = boot.Spawn(ctx, boot.Command{
		N: p.NP, Path: self, Args: args, Env: append(os.Environ(), mark), Hosts: hosts,
		Stdout: sc.table(os.Stdout), Stderr: sc.messages(os.Stderr),
	})
	sc.clear()
	var exit *boot.ExitError
	switch {
	case err == nil:
		return good
	case ctx.Err() != nil:
		return complain(failed, errors.New("interrupted; all ranks have ended"))
	case errors.As(err, &exit) && exit.Code == failed && exit.Signal == nil:
		return failed // it has said why
	}
	return complain(failed, err)
}

// hint says that an accelerator lies idle.
func hint(args []string) {
	if h := machine.Hint("/", compiled, args); h != "" {
		fmt.Println(h)
	}
}
