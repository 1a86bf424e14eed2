package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// run is the benchmark on the ranks of this process.
func (p *plan) run(ctx context.Context, args []string) int {
	if !p.ours && p.where.Rank == 0 && !p.Quiet {
		tellIdle(p.tableTo(), args)
	}
	from := time.Now()
	ranks, done, err := p.ranks(ctx)
	joined := time.Since(from)
	if err != nil {
		return p.end(ctx, err)
	}
	defer done()
	errs := make([]error, len(ranks))
	status := make([]int, len(ranks))
	var all sync.WaitGroup
	for i, b := range ranks {
		all.Go(func() { status[i], errs[i] = p.rank(ctx, b, joined, args) })
	}
	all.Wait()
	slices.SortStableFunc(errs, func(a, b error) int { return weight(b) - weight(a) })
	if errs[0] != nil {
		return p.end(ctx, errs[0])
	}
	return status[0]
}

// ranks are the bootstraps of the ranks of this process.
func (p *plan) ranks(ctx context.Context) (ranks []ccl.Bootstrap, done func(), err error) {
	if !p.launched {
		for _, b := range boot.Local(p.Threads, launch.Hosts(p.Threads, p.Hosts)...) {
			ranks = append(ranks, b)
		}
		return ranks, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, joinLimit(os.Getenv))
	defer cancel()
	b, leave, err := ccl.Launched(ctx)
	if err != nil {
		return nil, nil, err
	}
	launch.Joined(os.Getenv, p.where)
	if p.Threads == 1 {
		return []ccl.Bootstrap{b}, leave, nil
	}
	return launch.Threads(b, p.Threads), leave, nil
}

// joinLimit is how long the ranks may take to find each other, and then to make a communicator:
// what GOCCL_BOOT_TIMEOUT says. What it says wrongly package boot refuses.
func joinLimit(getenv func(string) string) time.Duration {
	d, _ := environ.BootTimeout.From(getenv)
	return cmp.Or(d, joining)
}

// rank is the benchmark on one rank; it returns the exit status if there is no error.
func (p *plan) rank(ctx context.Context, b ccl.Bootstrap, joined time.Duration, args []string) (status int, err error) {
	s := &session{ctx: ctx, o: &p.Options}
	if err := s.begin(b, joined); err != nil {
		return option.Failed, errors.Join(err, s.end())
	}
	defer s.end()
	if s.world.Rank() == 0 {
		to := p.tableTo()
		s.out = &output{w: to, err: os.Stderr, terminal: watched(), opts: &p.Options,
			file: report.NewFile(calledBy(args), os.Environ(), time.Now())}
		wide := shownOn()
		s.out.narrow = wide > 0 && wide < report.Wide && p.As == "" && p.Plan == ""
		if !p.parented() {
			sc := newScreen(os.Stderr)
			defer sc.clear()
			s.out.w, s.out.err, s.out.terminal = sc.table(to), sc.messages(os.Stderr), isTerminal(os.Stderr) && !p.Quiet
		}
	}
	if err = s.describe(p); err == nil {
		err = s.run()
	}
	if s.out == nil {
		return option.Good, err
	}
	if err == nil {
		s.out.write(s.summary.Foot(report.Program(&p.Options)))
	}
	if text := s.out.file.BelowMean(); text != "" {
		s.out.comment("%s", text)
	}
	s.out.tail()
	return s.out.finish(p, &s.summary, cmp.Or(err, s.out.failed))
}

// tableTo is where the table goes: standard output, unless a file is wanted there.
func (p *plan) tableTo() *os.File {
	if p.ToStdout() {
		return os.Stderr
	}
	return os.Stdout
}

// calledBy is the command line as it was given.
func calledBy(args []string) []string {
	if len(args) > 1 && args[0] == calledAs {
		return args[1:]
	}
	return append([]string{"bench"}, args...)
}

// finish writes the files, and tells how it went.
func (o *output) finish(p *plan, s *report.Summary, err error) (status int, _ error) {
	if err != nil {
		o.file.Errors = append(o.file.Errors, err.Error())
	}
	o.file.Close(s, time.Now())
	for _, f := range p.files() {
		err = errors.Join(err, o.file.Save(f.flag, f.path, f.write))
	}
	if len(o.file.Results) > 0 {
		err = errors.Join(err, p.figures(o.file))
	}
	if err == nil && len(o.file.Results) == 0 && o.file.Step == nil {
		err = errors.New("nothing was measured: " + o.nothing())
	}
	switch {
	case s.Wrong > 0 || err != nil:
		return option.Failed, err
	case s.BelowAverage():
		return option.Failed, nil // the footer says so
	case len(s.Missed()) > 0:
		for _, text := range s.Missed() {
			fmt.Fprintln(o.err, "bench: "+text)
		}
		return option.Missed, nil
	}
	return option.Good, nil
}

// nothing says why there is no row.
func (o *output) nothing() string {
	if len(o.file.Skipped) > 0 {
		return "the backend supports none of " + strings.Join(o.file.Skipped, ", ")
	}
	return "no size was left to measure"
}
