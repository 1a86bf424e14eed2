package harness

import (
	"context"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// line measures one line of the table: a row of each backend.
func line[T ccl.Number](s *session, c *coll.Collective[T], op ccl.Op, root int, e extent) ([]*report.Row, error) {
	var rows []*report.Row
	for _, l := range s.lanes {
		rows = append(rows, newRow(s, l, c, op, root, e))
	}
	return rows, limited(s, title(c, op), e.bytes, func(ctx context.Context) error {
		for _, inPlace := range []bool{false, true} {
			if err := half(s, ctx, c, op, root, e, inPlace, rows); err != nil {
				return err
			}
		}
		return nil
	})
}

func newRow[T ccl.Number](s *session, l lane, c *coll.Collective[T], op ccl.Op, root int, e extent) *report.Row {
	row := &report.Row{Op: c.Name, Size: e.bytes, Count: e.count, Type: ccl.TypeOf[T]().String(), Redop: "none",
		Root:    root,
		Backend: l.name, Cycle: s.cycle, Algorithm: l.c.Plan(c.Kind, ccl.TypeOf[T](), op, e.count)}
	if c.Reduces {
		row.Redop = op.String()
	}
	if c.NoData {
		row.Type = "none"
	}
	return row
}

// half measures one half of the rows, in turns where there are several backends.
func half[T ccl.Number](s *session, ctx context.Context, c *coll.Collective[T], op ccl.Op, root int, e extent,
	inPlace bool, rows []*report.Row) error {
	loops := make([]*loop[T], len(s.lanes))
	for i, l := range s.lanes {
		loops[i] = &loop[T]{t: newTest(s, ctx, l, c, op, root, e.count, e.room, inPlace)}
	}
	if err := timed(s, loops); err != nil {
		return err
	}
	for i, p := range loops {
		each, err := p.t.iterate(s.individually(p.iters))
		if err != nil {
			return err
		}
		f := p.findings()
		f.late, f.busy = each.late, c.Factor(p.t.shape)
		if s.o.Flush {
			f.us = each.mean
		}
		for range s.o.Check {
			check := p.t.check
			if c.NoData {
				check = p.t.checkBarrier
			}
			if err := check(f); err != nil {
				return err
			}
		}
		result, err := s.agree(ctx, f, rows[i], inPlace)
		if err != nil {
			return err
		}
		if inPlace {
			rows[i].InPlace, rows[i].InPlaceIter = result, each.stats
		} else {
			rows[i].OutOfPlace, rows[i].OutOfPlaceIter, rows[i].Iterations = result, each.stats, p.iters
		}
		if s.o.Overlap && !inPlace {
			if rows[i].Overlap, err = p.t.overlap(result.Time); err != nil {
				return err
			}
		}
		if err := p.t.closeGraphs(); err != nil {
			return err
		}
	}
	return nil
}

// individually is how many iterations the pass has in which each is timed by itself,
// after n that were timed together: as many, to a limit, but few where nobody asks.
func (s *session) individually(n int) int {
	const few, most = 20, 2000
	if s.o.Individually() {
		return min(n, most)
	}
	return min(n, few)
}

// loop is the timing of one test, all iterations together.
type loop[T ccl.Number] struct {
	t     *test[T]
	took  time.Duration
	iters int
	first time.Duration // of the very first call
	batch int           // iterations of the next batch; 0: enough
}

// timed times the tests. Several take turns, so that what changes meanwhile on the
// machine changes for all of them.
func timed[T ccl.Number](s *session, loops []*loop[T]) error {
	for _, p := range loops {
		if err := p.warm(); err != nil {
			return err
		}
	}
	if s.o.Flush {
		for _, p := range loops {
			p.iters = s.o.Iters // each is timed by itself
		}
		return nil
	}
	turns := 1
	if len(loops) > 1 {
		turns = 5
	}
	for _, p := range loops {
		groups := (s.o.Agg + p.t.calls() - 1) / p.t.calls()
		p.batch = max(s.o.Timed(p.t.bytes)*groups/turns, 1)
		if s.o.Long() > 0 {
			p.batch = s.o.Iters // the least
		}
	}
	for turn, more := 0, true; more; turn++ {
		more = false
		for _, p := range loops {
			if p.batch == 0 {
				continue
			}
			if err := p.runBatch(); err != nil {
				return err
			}
			if err := p.plan(turn+1 == turns); err != nil {
				return err
			}
			more = more || p.batch > 0
		}
	}
	return nil
}

// warm makes the first call, and the others that are not timed.
func (p *loop[T]) warm() error {
	t := p.t
	fill(t.s.a.bytes())
	fill(t.s.b.bytes())
	if err := t.up(); err != nil {
		return err
	}
	for i := range t.s.o.Warmup {
		start := time.Now()
		if err := t.call(t.nextBuffers()); err != nil {
			return err
		}
		if i == 0 {
			p.first = time.Since(start)
		}
	}
	return nil
}

// runBatch times the next iterations.
func (p *loop[T]) runBatch() error {
	if err := ccl.Barrier(p.t.ctx, p.t.s.world); err != nil {
		return err
	}
	took, err := p.t.loop(p.batch)
	p.took += took
	p.iters += p.batch
	return err
}

// plan sets the next batch, alike on all ranks: what the slowest rank needs to fill the time that the loop is to take.
func (p *loop[T]) plan(last bool) error {
	target := p.t.s.o.Long()
	if target == 0 {
		if last {
			p.batch = 0
		}
		return nil
	}
	took := []int64{p.took.Nanoseconds()}
	if err := ccl.AllReduce(p.t.ctx, p.t.s.world, took, took, ccl.Max); err != nil {
		return err
	}
	left := target.Nanoseconds() - took[0]
	if left <= 0 {
		p.batch = 0
		return nil
	}
	each := max(took[0]/int64(p.iters), 1)
	p.batch = int(min(left/each+1, 8*int64(p.iters))) // the first ones may have been slow
	return nil
}

// findings is what this rank has found.
func (p *loop[T]) findings() *findings {
	f := &findings{firstCall: p.first.Seconds() * 1e6}
	if calls := p.iters * p.t.calls(); calls > 0 {
		f.us = p.took.Seconds() * 1e6 / float64(calls)
	}
	return f
}

func newTest[T ccl.Number](s *session, ctx context.Context, l lane, c *coll.Collective[T], op ccl.Op, root, count,
	bytes int, inPlace bool) *test[T] {
	t := &test[T]{Collective: c, s: s, c: l.c, ctx: ctx, op: l.operator(op), bytes: bytes, queue: l.c.On(s.stream()),
		shape: coll.NewShape(l.c.Size(), l.c.Rank(), root%l.c.Size(), count, s.o.Matrix)}
	t.inPlace = inPlace && t.shape.InPlace() && ccl.SupportsInPlace(l.c, c.Kind) == nil
	for i := range s.o.Rotate {
		t.sets = append(t.sets, t.newSet(i))
	}
	return t
}
