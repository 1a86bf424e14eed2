package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// lane is a backend under test, and the communicator that its calls go to.
type lane struct {
	name string
	c    *ccl.Comm // of this rank's group
}

// operator is op as its Comm has it.
func (l lane) operator(op ccl.Op) ccl.Op {
	if op == option.MulSum {
		return l.c.Scaled(option.Factor)
	}
	return op
}

// begin makes the communicators: one for the harness itself, of all ranks, and one
// for each backend, of this rank's group. joined is how long it took the ranks to
// find each other.
func (s *session) begin(b ccl.Bootstrap, joined time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, joinLimit(os.Getenv))
	defer cancel()
	start := &startup{joined: joined}
	connect := func(backend string) (*ccl.Comm, error) {
		from := time.Now()
		// A device's engine takes host memory through its device.
		o := &ccl.Options{Backend: backend, Staged: backend != "cpu" && s.o.Mem == "host", PeerTimeout: s.o.PeerTimeout}
		if backend != "cpu" {
			o.Hints = s.o.Hints
		}
		if at := s.o.DeviceOf(s.local()); at >= 0 && backend != "cpu" {
			o.Device = &at
		}
		c, err := ccl.NewComm(ctx, b, o)
		if err == nil {
			start.made = append(start.made, time.Since(from))
			s.comms = append(s.comms, c)
		}
		return c, err
	}
	world, err := connect("cpu")
	if err != nil {
		return err
	}
	s.world = world
	for i, name := range s.o.Backends {
		c := world
		if i > 0 || name != "cpu" {
			if c, err = connect(name); err != nil {
				return fmt.Errorf("-backend %s: %w", name, err)
			}
		}
		s.lanes = append(s.lanes, lane{name, c})
	}
	from := time.Now()
	if err := s.divide(ctx); err != nil {
		return err
	}
	if s.o.Split.How != "" {
		start.split = time.Since(from)
	}
	if err := s.meet(ctx); err != nil {
		return err
	}
	if err := s.openDevice(); err != nil {
		return err
	}
	s.startup, err = s.slowest(start)
	return err
}

// divide makes the groups of -split.
func (s *session) divide(ctx context.Context) error {
	if s.o.Split.How == "" {
		return nil
	}
	s.group = s.o.Split.Color(s.world.Rank(), s.world.Place().Node)
	for i := range s.lanes {
		c, err := s.lanes[i].c.Split(ctx, s.group, s.world.Rank())
		if err != nil {
			return fmt.Errorf("-split %v: %w", s.o.Split, err)
		}
		s.lanes[i].c = c
		s.comms = append(s.comms, c)
	}
	return nil
}

// local is this rank's place on its host, 0 before that is known.
func (s *session) local() int {
	if s.world == nil {
		return 0
	}
	return s.world.Place().Local
}

// abort gives up the calls under way: one that hangs on a device keeps its memory, and whoever frees that waits.
func (s *session) abort(why error) {
	for _, c := range s.comms {
		c.Abort(why)
	}
}

// end leaves all communicators.
func (s *session) end() error {
	var errs []error
	for i := len(s.comms) - 1; i >= 0; i-- {
		errs = append(errs, s.comms[i].Close())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(errs...)
}

// startup is what it took this rank to begin.
type startup struct {
	joined, split time.Duration
	made          []time.Duration // the harness's communicator, then the backends'
}

// slowest is the longest that any rank took for each part.
func (s *session) slowest(mine *startup) (*report.Startup, error) {
	us := func(d time.Duration) float64 { return report.Nanos(float64(d.Nanoseconds()) / 1e3) }
	v := []float64{us(mine.joined), us(mine.split)}
	for _, d := range mine.made {
		v = append(v, us(d))
	}
	all := make([]float64, len(v)*s.world.Size())
	if err := ccl.AllGather(s.ctx, s.world, all, v); err != nil {
		return nil, err
	}
	most := make([]float64, len(v))
	out := &report.Startup{Comms: map[string]float64{}}
	for i, x := range all {
		if i%len(v) == 2 && x > most[2] {
			out.Rank = i / len(v)
		}
		most[i%len(v)] = max(most[i%len(v)], x)
	}
	out.Join, out.Split = most[0], most[1]
	names := append([]string{"cpu"}, s.o.Backends...)
	if s.o.Backends[0] == "cpu" {
		names = s.o.Backends
	}
	for i, x := range most[2:] {
		out.Comms[names[i]] = max(out.Comms[names[i]], x)
	}
	return out, nil
}
