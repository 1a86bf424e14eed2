package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// test is one half of a line: one collective at one size, in place or not.
type test[T ccl.Number] struct {
	*coll.Collective[T]
	s       *session
	ctx     context.Context
	shape   coll.Shape
	op      ccl.Op
	bytes   int
	inPlace bool
	slots   []slot[T]
	queue   ccl.Queue
	issue   func(g ccl.Queue) error // all slots; made once, so that no iteration allocates
}

// slot is the memory of one call. Calls of one group must not touch the same memory.
type slot[T ccl.Number] struct{ dst, src []T }

// line measures one line of the table.
func line[T ccl.Number](s *session, c *coll.Collective[T], op ccl.Op, root, count, bytes int) (*report.Row, error) {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if s.o.Timeout > 0 {
		ctx, cancel = context.WithTimeout(s.ctx, s.o.Timeout)
	}
	defer cancel()

	row := &report.Row{Op: c.Name, Size: bytes, Count: count, Type: ccl.TypeOf[T]().String(), Redop: "none", Root: root}
	if c.Reduces {
		row.Redop = op.String()
	}
	if c.NoData {
		row.Type = "none"
	}
	if s.o.Verbose {
		row.Algorithm = s.c.Plan(c.Kind, ccl.TypeOf[T](), op, count)
	}
	for _, half := range []struct {
		inPlace bool
		result  *report.Result
	}{{false, &row.OutOfPlace}, {true, &row.InPlace}} {
		t := newTest(s, ctx, c, op, root, count, bytes, half.inPlace)
		found, err := t.measure()
		if err == nil {
			*half.result, err = s.agree(ctx, found, row, half.inPlace, c.Factor(s.c.Size()))
		}
		switch {
		case err == nil:
		// The limit may have passed here or, a moment before, on another rank.
		case s.ctx.Err() == nil && (ctx.Err() != nil || s.o.Timeout > 0 && errors.Is(err, ccl.ErrTimeout)):
			return nil, fmt.Errorf("%s, %s bytes: longer than -T %v: %w", title(c, op), option.FormatSize(bytes), s.o.Timeout, err)
		default:
			return nil, fmt.Errorf("%s, %s bytes: %w", title(c, op), option.FormatSize(bytes), err)
		}
	}
	return row, nil
}

func newTest[T ccl.Number](s *session, ctx context.Context, c *coll.Collective[T], op ccl.Op, root, count, bytes int, inPlace bool) *test[T] {
	t := &test[T]{Collective: c, s: s, ctx: ctx, op: op, bytes: bytes, inPlace: inPlace,
		shape: coll.NewShape(s.c.Size(), s.c.Rank(), root, count), queue: s.c.On(nil)}
	room := s.o.Agg
	if bytes > 0 {
		room = min(room, len(s.a)/bytes)
	}
	for i := range room {
		a, b := as[T](s.a[i*bytes:(i+1)*bytes]), as[T](s.b[i*bytes:(i+1)*bytes])
		dst, src := c.Buffers(t.shape, inPlace, a, b)
		t.slots = append(t.slots, slot[T]{dst, src})
	}
	t.issue = func(g ccl.Queue) error {
		for _, sl := range t.slots {
			t.Queue(g, t.shape, ccl.Host(sl.dst), ccl.Host(sl.src), t.op)
		}
		return nil
	}
	return t
}

// call makes one call for each slot: a blocking one, or with -m a group.
func (t *test[T]) call() error {
	if t.s.o.Agg == 1 {
		return t.Run(t.ctx, t.s.c, t.shape, t.slots[0].dst, t.slots[0].src, t.op)
	}
	return t.queue.Group(t.issue).Wait(t.ctx)
}

// found is what one rank has found in one test.
type found struct {
	us      float64 // per call
	checked bool
	wrong   int
	first   verify.Wrong

	// Of a barrier: when this rank entered and left, by the clock of its host.
	node        int
	enter, exit int64
}

// fill makes every byte of b 0x3f: an ordinary number of every type, 0.75 as a float.
func fill(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = 0x3f
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// measure times the calls, then checks some.
func (t *test[T]) measure() (*found, error) {
	// Not zeros: processors store those faster than other numbers.
	fill(t.s.a)
	fill(t.s.b)
	for range t.s.o.Warmup {
		if err := t.call(); err != nil {
			return nil, err
		}
	}
	if err := ccl.Barrier(t.ctx, t.s.c); err != nil {
		return nil, err
	}
	groups := (t.s.o.Agg + len(t.slots) - 1) / len(t.slots)
	iters := t.s.o.Timed(t.bytes) * groups
	start := time.Now()
	for range iters {
		if err := t.call(); err != nil {
			return nil, err
		}
	}
	took := time.Since(start)
	f := &found{us: took.Seconds() * 1e6 / float64(iters*len(t.slots)), node: t.s.c.Place().Node}
	for range t.s.o.Check {
		check := t.check
		if t.NoData {
			check = t.checkBarrier
		}
		if err := check(f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// check makes one call per slot whose result is known.
func (t *test[T]) check(f *found) error {
	patterns := make([]*verify.Pattern, len(t.slots))
	for i, sl := range t.slots {
		t.s.seed++
		p := &verify.Pattern{Type: ccl.TypeOf[T](), Op: t.op, Reduce: t.Reduces, Ranks: t.shape.Ranks, Seed: t.s.seed}
		t.parts(sl.dst, func(got []byte, part coll.Part) { p.Poison(got, part.From, part.Off) })
		p.Fill(bytesOf(sl.src), t.shape.Rank, 0) // in place this may be part of dst
		patterns[i] = p
	}
	if err := t.call(); err != nil {
		return err
	}
	for i, sl := range t.slots {
		at := 0
		t.parts(sl.dst, func(got []byte, part coll.Part) {
			n, first := patterns[i].Check(got, part.From, part.Off)
			if n > 0 && f.wrong == 0 {
				f.first = first
				f.first.Index += at
			}
			f.wrong += n
			at += part.Len
		})
		// Out of place the input is the caller's, and stays as it was.
		if !t.inPlace {
			n, first := patterns[i].Check(bytesOf(sl.src), t.shape.Rank, 0)
			if n > 0 && f.wrong == 0 {
				f.first = first
			}
			f.wrong += n
		}
	}
	f.checked = true
	return nil
}

// parts calls f with each part of dst.
func (t *test[T]) parts(dst []T, f func(got []byte, part coll.Part)) {
	for _, part := range t.Want(t.shape) {
		f(bytesOf(dst[:part.Len]), part)
		dst = dst[part.Len:]
	}
}

// checkBarrier notes when this rank was in a barrier: no rank may leave before the
// last has entered.
func (t *test[T]) checkBarrier(f *found) error {
	var ok bool
	f.enter, ok = machine.Clock()
	if err := t.call(); err != nil {
		return err
	}
	f.exit, _ = machine.Clock()
	f.checked = ok
	return nil
}

// agree brings together what the ranks have found: every rank gets the same result.
func (s *session) agree(ctx context.Context, f *found, row *report.Row, inPlace bool, factor float64) (report.Result, error) {
	const words = 9
	mine := [words]uint64{math.Float64bits(f.us), bit(f.checked), uint64(f.wrong), uint64(f.first.Index), f.first.Got, f.first.Want,
		uint64(f.node), uint64(f.enter), uint64(f.exit)}
	flat := make([]uint64, words*s.c.Size())
	if err := ccl.AllGather(ctx, s.c, flat, mine[:]); err != nil {
		return report.Result{}, err
	}
	all := make([]found, s.c.Size())
	for r := range all {
		w := flat[r*words:]
		all[r] = found{us: math.Float64frombits(w[0]), checked: w[1] != 0, wrong: int(w[2]),
			first: verify.Wrong{Index: int(w[3]), Got: w[4], Want: w[5]}, node: int(w[6]), enter: int64(w[7]), exit: int64(w[8])}
	}
	early(all)
	s.out.complain(all, row, inPlace)
	return combine(all, s.o.Average, row.Size, factor), nil
}

// early counts as wrong each rank that left a barrier before another rank of its
// host, by the same clock, had entered it.
func early(all []found) {
	last := map[int]int64{}
	for _, f := range all {
		last[f.node] = max(last[f.node], f.enter)
	}
	for r := range all {
		if f := &all[r]; f.exit != 0 && f.exit < last[f.node] {
			f.wrong++
		}
	}
}

// combine makes one result of what all ranks have found.
func combine(all []found, average option.Average, size int, factor float64) report.Result {
	least, most, sum := all[0].us, all[0].us, 0.0
	wrong, checked := int64(0), true
	for _, f := range all {
		least, most, sum = min(least, f.us), max(most, f.us), sum+f.us
		wrong += int64(f.wrong)
		checked = checked && f.checked
	}
	mean := sum / float64(len(all))
	us := [...]float64{option.OfRank0: all[0].us, option.Mean: mean, option.Least: least, option.Most: most}[average]
	r := report.NewResult(size, us, factor)
	r.TimeMin, r.TimeAvg, r.TimeMax = least, mean, most
	if checked {
		r.Wrong = &wrong
	}
	return r
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
