package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A scene is a Comm on which steps are made, with random numbers of its own, so that what one scene draws changes no other.
type scene struct {
	r     *rank
	c     *ccl.Comm
	ctx   context.Context
	seats []int // of the ranks of c
	step  int
	rnd   *rand.Rand // the same on all ranks of c
	own   *rand.Rand // this rank's
	arena *arena
	depth int
}

// newScene is that of a Comm in a step; id tells the scenes of a step apart, on all ranks alike.
func (r *rank) newScene(ctx context.Context, c *ccl.Comm, seats []int, step, depth int, id uint64) *scene {
	return &scene{r: r, c: c, ctx: ctx, seats: seats, step: step, depth: depth,
		rnd: rand.New(rand.NewPCG(r.p.seed, mix(uint64(step), id))),
		own: rand.New(rand.NewPCG(mix(r.p.seed, uint64(r.seat)+1), mix(uint64(step), id)))}
}

// wrong says that the library is: what a rank has seen and must not be.
type wrong string

func (w wrong) Error() string { return string(w) }

func (s *scene) wrongf(format string, args ...any) error {
	return wrong(fmt.Sprintf("step %d: ", s.step) + fmt.Sprintf(format, args...))
}

// draw is the next call of the scene.
func (s *scene) draw() prepared {
	k := newCall(s.rnd, s.c.Size(), s.r.p.bytes)
	return k.elem.prepare(s, k)
}

// checked is an error, or what a call without one has wrong.
func (s *scene) checked(p prepared, err error) error {
	if err != nil {
		return fmt.Errorf("step %d: %v: %w", s.step, p.call, err)
	}
	if text := p.check(false); text != "" {
		return s.wrongf("%s", text)
	}
	return nil
}

// blocking makes some calls.
func (s *scene) blocking() error {
	for range 1 + s.rnd.IntN(6) {
		p := s.draw()
		if err := s.checked(p, p.block(s.ctx)); err != nil {
			return err
		}
	}
	return nil
}

// queued issues some calls, on several streams, alone and in groups, and waits for them in different ways.
func (s *scene) queued() error {
	streams := []ccl.Stream{nil, ccl.NewHostStream(), ccl.NewHostStream(), ccl.Now}
	defer streams[1].(*ccl.HostStream).Close()
	defer streams[2].(*ccl.HostStream).Close()
	var all []prepared
	var works []ccl.Work
	done := 0 // by Do, which one stream runs in order
	for range 1 + s.rnd.IntN(6) {
		stream := streams[s.own.IntN(len(streams))]
		q := s.c.On(stream)
		if s.own.IntN(3) == 0 {
			q = q.Within(callLimit)
		}
		if s.rnd.IntN(3) > 0 {
			p := s.draw()
			if k := p.call; k.kind == ccl.KindAllReduce && s.rnd.IntN(2) == 0 {
				q = q.Numbered(1 + s.rnd.IntN(9))
			}
			all, works = append(all, p), append(works, p.queue(q))
			continue
		}
		// A group: its calls are small and of one kind, now and then with a message beside them.
		var group []prepared
		k := newCall(s.rnd, s.c.Size(), min(s.r.p.bytes, 4096))
		for k.kind == ccl.KindSend {
			k = newCall(s.rnd, s.c.Size(), min(s.r.p.bytes, 4096))
		}
		for range 1 + s.rnd.IntN(4) {
			k.salt = s.rnd.Uint64()
			group = append(group, k.elem.prepare(s, k))
		}
		if s.rnd.IntN(2) == 0 {
			k.kind, k.salt, k.counts = ccl.KindSendRecv, s.rnd.Uint64(), nil
			group = append(group, k.elem.prepare(s, k))
		}
		var inner []ccl.Work
		works = append(works, q.Group(func(g ccl.Queue) error {
			for _, p := range group {
				inner = append(inner, p.queue(g))
			}
			return nil
		}))
		works, all = append(works, inner...), append(all, group...)
	}
	do := s.c.On(streams[1]).Do(func() error { done++; return nil })
	for _, w := range append(works, do) {
		if err := s.wait(w); err != nil {
			return fmt.Errorf("step %d: queued: %w", s.step, err)
		}
	}
	if done != 1 {
		return s.wrongf("Do ran its function %d times", done)
	}
	for _, p := range all {
		if err := s.checked(p, nil); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for a call in one of the ways that there are.
func (s *scene) wait(w ccl.Work) error {
	switch s.own.IntN(4) {
	case 0:
		told := make(chan error, 2)
		w.OnDone(func(err error) { told <- err })
		return <-told
	case 1:
		for {
			if done, err := w.Test(); done {
				return err
			}
			if err := w.Wait(ended); err == nil {
				return nil
			} else if !errors.Is(err, ccl.ErrCanceled) {
				return err
			}
			time.Sleep(50 * time.Microsecond) // time may stand still until all sleep: testing/synctest
		}
	case 2:
		if err := w.Wait(ended); err != nil && !errors.Is(err, ccl.ErrCanceled) {
			return err
		}
	}
	return w.Wait(s.ctx)
}

// ended is a context that has.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// refused makes a call that is wrong, another one on each rank: it has no effect.
func (s *scene) refused() error {
	n, c, ctx := s.c.Size(), s.c, s.ctx
	x, y := make([]float32, 8*n+8), make([]float32, 8*n+8)
	calls := []func() error{
		func() error { return ccl.Broadcast(ctx, c, x, n) },
		func() error { return ccl.Broadcast(ctx, c, x, -1) },
		func() error { return ccl.AllReduce(ctx, c, x[:3], y[:4], ccl.Sum) },
		func() error { return ccl.AllReduce(ctx, c, x[:8], x[1:9], ccl.Sum) },
		func() error { return ccl.AllReduce(ctx, c, x, y, ccl.Op(200)) },
		func() error { return ccl.AllGather(ctx, c, x[:n*2+1], y[:2]) },
		func() error { return ccl.AllGatherV(ctx, c, x, []int{1, -2}, y) },
		func() error { return ccl.ScatterV(ctx, c, x, y, make([]int, n+1), 0) },
		func() error { return ccl.Send(ctx, c, x, n+3) },
		func() error {
			return ccl.AllReduce(ctx, c, make([]ccl.Float8E4M3, 2), make([]ccl.Float8E4M3, 2), ccl.BOr)
		},
		func() error { return ccl.LinkTo(c, n, 0).Send(ccl.BufOf(x)).Wait(ctx) },
		func() error { return ccl.LinkTo(c, 0, -1).Send(ccl.BufOf(x)).Wait(ctx) },
		func() error { _, err := ccl.Subset(ctx, c, []int{c.Rank(), c.Rank()}, 0); return err },
		func() error { _, err := ccl.Subset(ctx, c, nil, 0); return err },
	}
	for range 1 + s.own.IntN(4) {
		i := s.own.IntN(len(calls))
		err := calls[i]()
		if !errors.Is(err, ccl.ErrArgument) && !errors.Is(err, ccl.ErrUnsupported) {
			return s.wrongf("wrong call %d: %v", i, err)
		}
	}
	for i := range x {
		if x[i] != 0 || y[i] != 0 {
			return s.wrongf("a refused call has written")
		}
	}
	return s.blocking()
}

// barrier is one of the two.
func (s *scene) barrier() error {
	if s.rnd.IntN(2) == 0 {
		return ccl.MonitoredBarrier(s.ctx, s.c)
	}
	return ccl.Barrier(s.ctx, s.c)
}
