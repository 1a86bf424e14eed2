// Package harness runs the benchmark on the ranks of this process.
package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
)

// session is the benchmark as one rank runs it. All ranks make the same calls.
type session struct {
	ctx     context.Context
	o       *option.Options
	world   *ccl.Comm // all ranks, for what the harness itself has to say
	lanes   []lane
	dev     *engine.Device // where the buffers lie; nil: in host memory
	group   int            // this rank's, with -split
	groups  groups         // of all ranks
	comms   []*ccl.Comm    // all there are, in the order in which they were made
	startup *report.Startup
	out     *output // nil but on rank 0
	seed    uint64  // changes with every checked call, alike on all ranks

	a, b    buffer   // the users' buffers: Rotate times stride bytes each
	sweep   []uint64 // of -flush
	stride  int      // the largest size, and what -u adds
	began   time.Time
	cycle   int
	summary report.Summary
}

// benchmark is what a session does with elements of one type.
type benchmark struct {
	settle     func(s *session) error
	collective func(s *session, name string) error
	step       func(s *session) error
}

func of[T ccl.Number]() benchmark { return benchmark{settle[T], collective[T], step[T]} }

// typed has the benchmark for each element type.
var typed = map[ccl.Type]benchmark{
	ccl.TypeInt8:       of[int8](),
	ccl.TypeUint8:      of[uint8](),
	ccl.TypeInt16:      of[int16](),
	ccl.TypeUint16:     of[uint16](),
	ccl.TypeInt32:      of[int32](),
	ccl.TypeUint32:     of[uint32](),
	ccl.TypeInt64:      of[int64](),
	ccl.TypeUint64:     of[uint64](),
	ccl.TypeFloat16:    of[ccl.Float16](),
	ccl.TypeBFloat16:   of[ccl.BFloat16](),
	ccl.TypeFloat32:    of[float32](),
	ccl.TypeFloat64:    of[float64](),
	ccl.TypeFloat8E4M3: of[ccl.Float8E4M3](),
	ccl.TypeFloat8E5M2: of[ccl.Float8E5M2](),
}

// errEnough says that the time of -for has passed.
var errEnough = errors.New("the time of -for has passed")

// run measures all that the options ask for.
func (s *session) run() (err error) {
	s.summary.MinBusBW, s.summary.MaxP99, s.summary.MinAverage = s.o.MinBusBW, s.o.MaxP99, s.o.MinAverage
	if err := s.prepare(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.abort(err)
		}
		s.a.free()
		s.b.free()
	}()
	s.hush()
	if err := s.settle(); err != nil {
		return err
	}
	if s.o.Links {
		links, err := ccl.MeasureLinks(s.ctx, s.world)
		if err != nil {
			return err
		}
		s.out.links(links)
	}
	s.began = time.Now()
	s.newClock()
	for s.cycle = 0; s.o.Soak > 0 || s.o.Cycles == 0 || s.cycle < s.o.Cycles; s.cycle++ {
		err := s.once()
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return err
		}
	}
	// No rank leaves before all have got here: what fails on any reaches rank 0, which says so. No other call
	// of the harness is like this one, so a rank that is elsewhere does not pass for one that is here.
	var end [3]uint16
	if err := ccl.AllReduce(s.ctx, s.world, end[:], end[:], ccl.Max); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return s.memoryReport("Collective")
}

// prepare makes the buffers.
func (s *session) prepare() error {
	if err := s.memoryReport("Initialization"); err != nil {
		return err
	}
	s.stride = stride(s.o.Largest(s.groups.shown()), s.o.Misalign)
	var err error
	if s.a, err = s.allocate(s.stride * s.o.Rotate); err != nil {
		return err
	}
	if s.b, err = s.allocate(s.stride * s.o.Rotate); err != nil {
		return err
	}
	if s.o.Flush {
		s.sweep = make([]uint64, sweepBytes/8)
	}
	return s.memoryReport("User-Allocated")
}

// once runs through all collectives, types, operators, roots and sizes.
func (s *session) once() error {
	if s.o.Plan != "" {
		return typed[s.o.Types[0]].step(s)
	}
	for _, name := range s.o.Collectives {
		s.out.head(name, len(s.o.Collectives) > 1)
		for _, t := range s.o.Types {
			if err := typed[t].collective(s, name); err != nil {
				return err
			}
			if name == "barrier" {
				break // it has no type
			}
		}
	}
	return nil
}

// collective measures one collective on elements of type T, with every operator
// and root that is asked for and has a meaning.
func collective[T ccl.Number](s *session, name string) error {
	c := coll.Named[T](name)
	ops, roots := []ccl.Op{ccl.Sum}, []int{-1}
	if c.Reduces {
		ops = s.o.Ops
	}
	switch {
	case c.Rooted && s.o.Root == option.AllRoots:
		roots = roots[:0]
		for r := range s.groups.shown() {
			roots = append(roots, r)
		}
	case c.Rooted:
		roots[0] = s.o.Root % s.groups.shown()
	}
	for _, op := range ops {
		if err := s.supports(c.Kind, ccl.TypeOf[T](), op); err != nil {
			s.out.skip(title(c, op), err)
			continue
		}
		for _, root := range roots {
			if err := curve(s, c, op, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// supports is nil if every backend can do it.
func (s *session) supports(k ccl.Kind, t ccl.Type, op ccl.Op) error {
	for _, l := range s.lanes {
		if err := l.c.Supports(k, t, l.operator(op)); err != nil {
			return err
		}
	}
	return nil
}

// title names a test: allreduce float sum.
func title[T ccl.Number](c *coll.Collective[T], op ccl.Op) string {
	switch {
	case c.NoData:
		return c.Name
	case c.Reduces:
		return fmt.Sprintf("%s %v %v", c.Name, ccl.TypeOf[T](), op)
	}
	return fmt.Sprintf("%s %v", c.Name, ccl.TypeOf[T]())
}

// curve measures one line for each size, of each backend. Sizes that come to the same number of elements as the one
// before are one, unless each was named, or nccl-tests would have a line for each.
func curve[T ccl.Number](s *session, c *coll.Collective[T], op ccl.Op, root int) error {
	last := -1
	var beside []*report.Row
	for i, size := range s.o.Sizes(ccl.TypeOf[T]().Size()) {
		e := extentOf(s, c, size)
		if e.shown == last && len(s.o.Lengths) == 0 && s.o.As == "" {
			s.out.measured(i, 0, nil)
			continue
		}
		last = e.shown
		s.out.progress("%s: %s%s", title(c, op), option.FormatSize(e.bytes), s.out.left(i))
		start := time.Now()
		rows, err := line(s, c, op, root, e)
		if err != nil {
			return err
		}
		s.out.measured(i, time.Since(start), rows)
		for _, row := range rows {
			s.summary.Add(row)
			if err := s.out.row(row); err != nil {
				return err
			}
		}
		beside = append(beside, rows...)
		if err := s.enough(); err != nil {
			return err
		}
	}
	s.out.beside(beside, s.o.Backends)
	return nil
}

// enough is errEnough on all ranks once rank 0 finds the time of -for over.
func (s *session) enough() error {
	if s.o.Soak == 0 {
		return nil
	}
	over := []uint8{0}
	if s.world.Rank() == 0 && time.Since(s.began) >= s.o.Soak {
		over[0] = 1
	}
	if err := ccl.Broadcast(s.ctx, s.world, over, 0); err != nil {
		return err
	}
	if over[0] == 1 {
		return errEnough
	}
	return nil
}
