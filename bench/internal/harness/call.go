package harness

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
)

// test is one half of a line on one backend: one collective at one size, in place or not.
type test[T ccl.Number] struct {
	*coll.Collective[T]
	s       *session
	c       *ccl.Comm
	ctx     context.Context
	shape   coll.Shape
	op      ccl.Op
	bytes   int // that a call takes of a buffer at most, alike on all ranks
	inPlace bool
	queue   ccl.Queue
	sets    []set[T] // of buffers, taken in turns: -rotate
	next    int
}

// set is the memory of one iteration. Calls of one group must not touch the same memory.
type set[T ccl.Number] struct {
	slots []slot[T]
	issue func(g ccl.Queue) error // all slots; made once, so that no iteration allocates
	graph *graph                  // of one iteration, with -G; made on first use
}

type slot[T ccl.Number] struct {
	dst, src []T     // what the host sees
	to, from ccl.Buf // the same, as calls on a queue get it
}

// newSet cuts the i-th set out of the session's memory.
func (t *test[T]) newSet(i int) (st set[T]) {
	elem := ccl.TypeOf[T]().Size()
	from, to := i*t.s.stride+t.s.o.Misalign*elem, (i+1)*t.s.stride
	a, b := t.s.a.bytes()[from:to], t.s.b.bytes()[from:to]
	room := t.s.o.Agg
	if t.bytes > 0 {
		room = min(room, len(a)/t.bytes)
	}
	for k := range room {
		dst, src := t.Buffers(t.shape, t.inPlace, as[T](a[k*t.bytes:(k+1)*t.bytes]), as[T](b[k*t.bytes:(k+1)*t.bytes]))
		st.slots = append(st.slots, slot[T]{dst, src, bufOf(t.s, dst), t.source(src)})
	}
	slots := st.slots
	st.issue = func(g ccl.Queue) error {
		for _, sl := range slots {
			t.Queue(g, t.shape, sl.to, sl.from, t.op)
		}
		return nil
	}
	return st
}

// source is src as calls on a queue get it. An all-reduce in place says so, as a program does: a
// Queue has a shorter way for the same call once more.
func (t *test[T]) source(src []T) ccl.Buf {
	if t.inPlace && t.Kind == ccl.KindAllReduce {
		return ccl.InPlace()
	}
	return bufOf(t.s, src)
}

// nextBuffers is the set of the next iteration.
func (t *test[T]) nextBuffers() *set[T] {
	if len(t.sets) == 1 {
		return &t.sets[0]
	}
	t.next++
	return &t.sets[t.next%len(t.sets)]
}

// calls is how many calls an iteration makes: fewer than -m where the buffers do not
// hold so many; then it takes several iterations.
func (t *test[T]) calls() int { return len(t.sets[0].slots) }

// call makes the calls of one iteration: a blocking one, or with -m a group; on a device always queued.
func (t *test[T]) call(st *set[T]) error {
	if t.s.dev != nil {
		return t.put(st).Wait(t.ctx)
	}
	if t.s.o.Agg == 1 {
		return t.Run(t.ctx, t.c, t.shape, st.slots[0].dst, st.slots[0].src, t.op)
	}
	if t.s.o.Timeout > 0 { // which ends no call on Now
		return t.queue.Group(st.issue).Wait(t.ctx)
	}
	return t.c.On(ccl.Now).Group(st.issue).Wait(t.ctx)
}

// put issues the calls of one iteration and does not wait.
func (t *test[T]) put(st *set[T]) ccl.Work {
	if t.s.o.Agg == 1 {
		return t.Queue(t.queue, t.shape, st.slots[0].to, st.slots[0].from, t.op)
	}
	return t.queue.Group(st.issue)
}

// loop makes n iterations, waiting as -z says, and tells how long that took.
func (t *test[T]) loop(n int) (time.Duration, error) {
	if t.s.o.Graph > 0 {
		return t.loopOfGraph(n)
	}
	var last ccl.Work
	start := time.Now()
	switch t.s.o.Blocking {
	case option.WaitEach:
		for range n {
			if err := t.call(t.nextBuffers()); err != nil {
				return 0, err
			}
		}
	case option.BarrierEach:
		for range n {
			if err := t.call(t.nextBuffers()); err != nil {
				return 0, err
			}
			if err := ccl.Barrier(t.ctx, t.s.world); err != nil {
				return 0, err
			}
		}
	default:
		if t.s.dev != nil {
			return t.loopOnDevice(n)
		}
		for range n {
			last = t.put(t.nextBuffers())
		}
		if err := last.Wait(t.ctx); err != nil {
			return 0, err
		}
		if t.s.o.Blocking == option.BarrierAtEnd {
			if err := ccl.Barrier(t.ctx, t.s.world); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// loopOnDevice makes n iterations and waits for the last. The device's own clock tells how long
// they took; with a barrier at the end, the host's. Where nothing is launched, as for one rank in
// place, the device may come to its first event when the last call was made, so the time is never
// less than the host took to make the calls.
func (t *test[T]) loopOnDevice(n int) (time.Duration, error) {
	clock := &t.s.dev.Clock
	from := time.Now()
	if err := clock.Start(); err != nil {
		return 0, err
	}
	var last ccl.Work
	first := time.Now()
	for range n {
		last = t.put(t.nextBuffers())
	}
	made := time.Since(first)
	if err := clock.Stop(); err != nil {
		return 0, err
	}
	if err := last.Wait(t.ctx); err != nil {
		return 0, err
	}
	if t.s.o.Blocking == option.BarrierAtEnd {
		err := ccl.Barrier(t.ctx, t.s.world)
		return time.Since(from), err
	}
	took, err := clock.Took()
	return max(took, made), err
}

// once makes the calls of one iteration, and tells how long that took.
func (t *test[T]) once(st *set[T]) (time.Duration, error) {
	if t.s.dev == nil {
		start := time.Now()
		err := t.call(st)
		return time.Since(start), err
	}
	if t.s.o.Graph > 0 {
		return t.launch(st.graph, 1)
	}
	return t.byClock(func() (ccl.Work, error) { return t.put(st), nil })
}

// byClock has issue put work on the device's stream, waits for the last of it, and tells how long
// it took by the device's own clock.
func (t *test[T]) byClock(issue func() (last ccl.Work, err error)) (time.Duration, error) {
	clock := &t.s.dev.Clock
	if err := clock.Start(); err != nil {
		return 0, err
	}
	last, err := issue()
	if err != nil {
		return 0, err
	}
	if err := clock.Stop(); err != nil {
		return 0, err
	}
	if err := last.Wait(t.ctx); err != nil {
		return 0, err
	}
	return clock.Took()
}

// stream is what calls are queued on: the device's, nil for that of the Comm itself.
func (s *session) stream() ccl.Stream {
	if s.dev == nil {
		return nil
	}
	return s.dev.Stream
}

// reach is how much of the buffers the test's calls use, from their beginning.
func (t *test[T]) reach() int {
	last := (len(t.sets) - 1) * t.s.stride
	return last + t.s.o.Misalign*ccl.TypeOf[T]().Size() + t.calls()*t.bytes
}

func (t *test[T]) up() error { return errors.Join(t.s.a.up(t.reach()), t.s.b.up(t.reach())) }

func (t *test[T]) down() error { return errors.Join(t.s.a.down(t.reach()), t.s.b.down(t.reach())) }
