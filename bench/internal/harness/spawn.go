package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/goccl/goccl/bench/internal/hint"
	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/logline"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

const (
	// environ.BenchParent tells a rank that bench started it: itself, or (byLauncher) through srun
	// or mpiexec. The value ends in terminal if progress is wanted.
	terminal   = "terminal"
	byLauncher = "launcher"
)

// parented reports whether another bench has the screen.
func (p *plan) parented() bool { return environ.BenchParent.Get() != "" }

// watched reports whether that bench wants to know how far things are.
func watched() bool { return strings.HasSuffix(environ.BenchParent.Get(), terminal) }

// spawned reports whether bench started this process as a rank itself, and not through
// a launcher.
func spawned() bool {
	v := environ.BenchParent.Get()
	return v != "" && !strings.HasPrefix(v, byLauncher)
}

// choose settles where and how ranks are to be started.
func (p *plan) choose(ctx context.Context, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start it as the ranks: %w", err)
	}
	p.start, err = launch.Order{
		Job: p.Job, NP: p.NP, NPGiven: p.NPGiven, ActAs: p.Hosts, Program: append([]string{self}, args...), Self: true,
	}.Plan(ctx, os.Getenv)
	if err == nil {
		p.NP = p.start.Ranks
	}
	return err
}

// spawn runs this program as the ranks.
func (p *plan) spawn(ctx context.Context, args []string) int {
	mark := "yes "
	if !p.start.Local {
		mark = byLauncher + " "
	} else if !p.Quiet {
		tellIdle(p.tableTo(), args)
	}
	if isTerminal(os.Stdout) {
		mark += columns + strconv.Itoa(screenColumns(os.Stdout)) + " "
	}
	if isTerminal(os.Stderr) && !p.Quiet {
		mark += terminal
	}
	p.start.Quiet = p.start.Quiet || p.ToStdout() // how the ranks are started would stand before the file
	p.start.Env = []string{environ.BenchParent.Set(mark)}
	sc := newScreen(os.Stderr)
	heard := &hint.Watch{W: sc.messages(os.Stderr)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	table := &sink{w: os.Stdout, broken: cancel}
	err := p.start.Run(ctx, sc.table(table), heard)
	sc.clear()
	if err := table.failed(); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			return option.Failed // whoever has closed the pipe wants no more
		}
		return complain(option.Failed, fmt.Errorf("the table cannot be written: %w; all ranks have ended", err))
	}
	return ended(ctx, err, heard.Said())
}

// sink passes on what is written until that fails, and says so at once: else the ranks would end by a broken pipe, for
// which nobody would know the cause, and what they had been copied to would stay.
type sink struct {
	w      io.Writer
	broken func()

	mu  sync.Mutex
	err error
}

// Write never fails: the ranks, whose output comes here, are to end in good order.
func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return len(b), nil
	}
	if _, err := s.w.Write(b); err != nil {
		s.err = prose.Cause(err)
		s.broken()
	}
	return len(b), nil
}

// failed is why the writing failed, if it has.
func (s *sink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ended is the exit status of a run that ranks have made. What no rank has said, as far as heard tells, it says.
func ended(ctx context.Context, err error, heard bool) int {
	var rank *boot.ExitError
	var launcher *launch.Exit
	switch {
	case err == nil:
		return option.Good
	case ctx.Err() != nil:
		return complain(option.Failed, errors.New("interrupted; all ranks have ended"))
	case errors.As(err, &rank) && rank.Signal == nil && known(rank.Code):
		if !heard {
			return complain(rank.Code, fmt.Errorf("%w, and no rank reported why: this is a bug in bench", err))
		}
		return rank.Code
	case errors.As(err, &launcher) && launcher.Said:
		if known(launcher.Code) {
			return launcher.Code
		}
		return option.Failed // of ranks that others took with them: PALS returns the highest code
	}
	if errors.Is(err, boot.Argument) {
		return complain(option.BadUsage, err)
	}
	return complain(option.Failed, err)
}

// known reports whether code is one that ranks end with, having said why.
func known(code int) bool { return code >= option.Failed && code <= option.Missed }

// tell makes what is logged say which rank it comes from.
func tell(ctx context.Context, l boot.Launch, w io.Writer) {
	host := environ.HostID.Get()
	if host == "" {
		host, _ = os.Hostname()
	}
	h := logline.New(w, l.Rank, host, environ.Log.Get())
	h.Muted = func() bool { return ctx.Err() != nil }
	slog.SetDefault(slog.New(h))
}
