package harness

import (
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/model"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// step replays the collectives of one training step: first each kind and size on its
// own, as a line of the table, then the sequence as it is.
func step[T ccl.Number](s *session) error {
	elem := ccl.TypeOf[T]().Size()
	calls, err := model.Named(s.o.Model).Step(s.o.Plan, s.groups.shown(), elem)
	if err != nil {
		return err
	}
	s.out.comment("-plan %s of %s: %s", s.o.Plan, s.o.Model, model.Explain(s.o.Plan))
	s.out.head("", false)
	often := map[model.Call]int{}
	var order []model.Call
	for _, c := range calls {
		if often[c]++; often[c] == 1 {
			order = append(order, c)
		}
	}
	tests := map[model.Call]*test[T]{}
	total := 0
	for _, call := range order {
		c := coll.Named[T](call.Op)
		op := s.o.Ops[0]
		e := extentOf(s, c, call.Elements*elem)
		s.out.progress("%s: %s", title(c, op), option.FormatSize(e.bytes))
		rows, err := line(s, c, op, -1, e)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Calls = often[call]
			s.summary.Add(row)
			if err := s.out.row(row); err != nil {
				return err
			}
		}
		tests[call] = newTest(s, s.ctx, s.lanes[0], c, op, -1, e.count, e.room, true)
		total += e.bytes * often[call]
	}
	if len(calls) == 0 {
		s.out.comment("a step has no call for one rank")
		return nil
	}
	times, err := replay(s, calls, tests)
	if err != nil {
		return err
	}
	iter := report.NewPerIter(times, nil, 0, 0)
	s.out.step(&report.Step{Scheme: s.o.Plan, Model: s.o.Model, Ranks: s.ranks(), Calls: len(calls), Bytes: total,
		Time: iter.Avg, Iter: iter})
	return nil
}

// replay makes the calls of whole steps, in their order, and gives each step's time by
// the slowest rank. Calls block, as those of a program that does nothing else.
func replay[T ccl.Number](s *session, calls []model.Call, tests map[model.Call]*test[T]) ([]float64, error) {
	times := make([]float64, s.o.Iters)
	for i := range times {
		if err := ccl.Barrier(s.ctx, s.world); err != nil {
			return nil, err
		}
		start := time.Now()
		for _, call := range calls {
			t := tests[call]
			if err := t.call(t.nextBuffers()); err != nil {
				return nil, err
			}
		}
		times[i] = time.Since(start).Seconds() * 1e6
		s.out.progress("%s of %s: step %d of %d", s.o.Plan, s.o.Model, i+1, len(times))
	}
	if !s.groups.alike(s.world.Rank()) {
		clear(times)
	}
	return times, ccl.AllReduce(s.ctx, s.world, times, times, ccl.Max)
}
