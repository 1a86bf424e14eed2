package harness

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// run is the benchmark on the ranks of this process.
func (p *plan) run(ctx context.Context, args []string) int {
	if !p.ours && p.where.Rank == 0 {
		hint(args)
	}
	ranks, done, err := p.ranks(ctx)
	if err != nil {
		return p.end(ctx, err)
	}
	defer done()
	errs := make([]error, len(ranks))
	wrong := make([]bool, len(ranks))
	finished := make(chan int)
	for i, b := range ranks {
		go func() {
			wrong[i], errs[i] = p.rank(ctx, b, args)
			finished <- i
		}()
	}
	for range ranks {
		<-finished
	}
	slices.SortStableFunc(errs, func(a, b error) int { return weight(b) - weight(a) })
	if errs[0] != nil {
		return p.end(ctx, errs[0])
	}
	if wrong[0] {
		return failed
	}
	return good
}

// ranks are the bootstraps of the ranks of this process.
func (p *plan) ranks(ctx context.Context) (ranks []ccl.Bootstrap, done func(), err error) {
	if !p.launched {
		for _, b := range boot.Local(p.Threads, launch.Hosts(p.Threads, p.Hosts)...) {
			ranks = append(ranks, b)
		}
		return ranks, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	b, err := boot.Env(ctx)
	if err != nil {
		return nil, nil, err
	}
	if p.Threads == 1 {
		return []ccl.Bootstrap{b}, func() { b.Close() }, nil
	}
	return launch.Threads(b, p.Threads), func() { b.Close() }, nil
}

// rank is the benchmark on one rank.
func (p *plan) rank(ctx context.Context, b ccl.Bootstrap, args []string) (wrong bool, err error) {
	join, cancel := context.WithTimeout(ctx, joining)
	c, err := ccl.NewComm(join, b, nil)
	cancel()
	if err != nil {
		return false, err
	}
	defer c.Close()
	s := &session{ctx: ctx, c: c, o: &p.Options}
	if c.Rank() == 0 {
		s.out = &output{w: os.Stdout, err: os.Stderr, terminal: os.Getenv(ours) == terminal,
			file: report.NewFile(append([]string{"bench"}, args...), os.Environ(), time.Now())}
		if !p.ours {
			sc := newScreen(os.Stderr)
			defer sc.clear()
			s.out.w, s.out.err, s.out.terminal = sc.table(os.Stdout), sc.messages(os.Stderr), isTerminal(os.Stderr)
		}
	}
	err = s.describe(p)
	if err == nil {
		err = s.run()
	}
	if err == nil {
		err = s.out.foot(&s.summary)
	}
	if s.out != nil {
		if p.JSON != "" {
			if err != nil {
				s.out.file.Errors = append(s.out.file.Errors, err.Error())
			}
			err = errors.Join(err, s.out.file.Save(p.JSON, &s.summary, time.Now()))
		}
	}
	return s.summary.Wrong > 0, err
}
