package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A lag is a host that is behind all others: see lagging.
type lag struct{ seat int }

// widen adds to a box what older seeds have not, by chances of its own, so that their plans stay nearly the same.
func (b *box) widen() {
	rnd := rand.New(rand.NewPCG(b.seed, 0x776964656e))
	if rnd.IntN(3) == 0 {
		b.link.Grid = []time.Duration{time.Millisecond, 5 * time.Millisecond}[rnd.IntN(2)]
	}
	b.far = b.far || b.link.Grid > 0
	workers := b.host[:b.ranks]
	alone := func(h int) bool {
		return len(slices.DeleteFunc(slices.Clone(b.host), func(o int) bool { return o != h })) == 1
	}
	f := &b.fault
	switch h, way := workers[rnd.IntN(len(workers))], rnd.IntN(12); {
	case b.plan.late+b.birth.torn > 0:
	case way < 2:
		if alone(h) {
			f.kind, f.host, b.birth.when = "leave", h, kindCount
		}
	case way == 2:
		if hosts := slices.Max(workers) + 1; hosts > 1 {
			f.kind, f.host = "noroute", h
			f.other = (h + 1 + rnd.IntN(hosts-1)) % hosts
		}
	}
	b.widenMore(rand.New(rand.NewPCG(b.seed, 0x6d6f7265)))
	soon := time.Duration(rnd.IntN(12)) * (b.link.Delay + b.link.Grid + 100*time.Microsecond) // while a few packets pass
	switch cuts := slices.Contains([]string{"alone", "silent", "stop", "cut"}, f.kind); {
	case !cuts || rnd.IntN(3) == 0:
	case b.ofStore() && b.birth.grow > 0: // as a Grow asks it
		f.at, b.birth.when = soon, growing
	case b.birth.way == byTCP && rnd.IntN(2) == 0: // as all meet
		f.at, b.birth.when = soon, kindCount
	}
	for i := range b.steps {
		if b.steps[i].kind == failing && !f.mild() {
			b.steps[i].kind = blocking
		}
	}
	b.lag.seat = rnd.IntN(b.ranks)
	for i, k := range []kind{unread, lagging, waitsRound} {
		n, at := 1+is(k == unread)*rnd.IntN(3), rnd.IntN(len(b.steps)+1)
		switch {
		case k == waitsRound && b.fault.kind == "none": // what ranks are told depends on no fault
		case k == lagging && b.lag.ends(b): // what hosts tell then goes every way there is
			at = len(b.steps)
		case rnd.IntN(4) > 0, k == waitsRound && !b.fault.mild(), k == lagging && (b.ranks < 3 || !alone(b.host[b.lag.seat])):
			continue
		}
		for j := range n {
			b.steps = slices.Insert(b.steps, at, step{number: 100 + 10*i + j, kind: k})
		}
	}
}

// crowd makes the job larger where hosts end and there are spares: by a host, and by a rank of the first one, as a launcher
// does that fills hosts in their order.
func (b *box) crowd() {
	rnd := rand.New(rand.NewPCG(b.seed, 0x63726f7764))
	if f := &b.fault; (f.kind == "kill" || f.kind == "silent") && b.spares > 0 && rnd.IntN(4) > 0 {
		next := slices.Max(b.host) + 1
		b.host = append(slices.Insert(b.host, 0, 0), next)
		b.ranks += 2
	}
}

// widenMore chooses a firewall of a host that forgets, while nobody calls anything, in the place of another short disturbance, and a
// second host that ends soon after the first, as the others go on without that one.
func (b *box) widenMore(rnd *rand.Rand) {
	f, workers := &b.fault, b.host[:b.ranks]
	last := workers[len(workers)-1]
	h, way := rnd.IntN(last+1), rnd.IntN(3)
	at, after := rnd.IntN(len(b.steps)+1), time.Duration(rnd.IntN(1<<rnd.IntN(19)))*time.Microsecond
	switch {
	case way == 0 && (f.kind == "flicker" || f.kind == "reset") && last > 0:
		f.kind, f.host, b.birth.when = "forget", h, idle
		f.at, f.last = 700*time.Millisecond, time.Duration(300+rnd.IntN(600))*time.Millisecond
		b.steps = slices.Insert(b.steps, at, step{number: 200, kind: idle})
	case way < 2+b.spares && f.kind == "kill" && h != f.host && last > 1:
		f.also, f.after = h, after
	}
}

// idles has nobody call anything for a while.
func (r *boxed) idles(ctx context.Context) error {
	err := ccl.Barrier(ctx, r.world)
	if err == nil {
		r.begins(idle)
		time.Sleep(idleSleep)
		err = ccl.Barrier(ctx, r.world)
	}
	return err
}

// ends reports whether the lag comes last, after the loss of another host.
func (l *lag) ends(b *box) bool {
	f := &b.fault
	ends := f.kind == "kill" || f.kind == "silent"
	return b.ranks > 3 && ends && f.host < b.host[b.ranks-1] && f.host != b.host[l.seat]
}

// leaves has this rank leave when that is to be, if it is the one: it closes the Comm beside what it calls.
func (r *boxed) leaves() (over func()) {
	if !r.isLeaving() {
		return func() {}
	}
	done, c := make(chan struct{}), r.world
	go func() {
		select {
		case <-r.all.leave:
			c.Close()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// isLeaving reports whether this rank is the one that leaves.
func (r *boxed) isLeaving() bool {
	return r.b.fault.kind == "leave" && r.b.fault.struck(r.b.host[r.seat])
}

// routeMost is how long a rank may take to say that two hosts have no route to each other.
const routeMost = 8 * time.Second

// isRouted looks at what a rank is told, after so long, where two hosts have no route to each other: which they are.
func (r *boxed) isRouted(err error, took time.Duration) {
	f := &r.b.fault
	if f.kind != "noroute" {
		return
	}
	text := err.Error()
	for _, h := range []int{f.host, f.other} {
		if !strings.Contains(text, r.net.Host(h).Addr().String()) || took > routeMost {
			r.f.add("NO ROUTE: seat %d is told after %v: %v", r.seat, took, err)
			return
		}
	}
}

// unread sends small messages on Comms that are closed before anybody receives them, which matters to none that
// come later. Then small messages are sent, and received only once they are complete: a receiver has room for them.
func (s *scene) unread() error {
	n, me := s.c.Size(), s.c.Rank()
	for range 1 + s.rnd.IntN(6) {
		c, err := s.c.Split(s.ctx, 0, me)
		if err != nil {
			return fmt.Errorf("step %d: Split: %w", s.step, err)
		}
		from, count := s.rnd.IntN(n), 1+s.rnd.IntN(16)
		if me == from {
			l := ccl.LinkTo(c, (me+1)%n, 0)
			for range count {
				if err := l.Send(ccl.BufOf(make([]byte, 16<<10))).Wait(s.ctx); err != nil {
					c.Close()
					return fmt.Errorf("step %d: a small message that nobody receives: %w", s.step, err)
				}
			}
		}
		err = s.barrier() // all is on its way
		if e := c.Close(); e != nil && err == nil {
			err = s.wrongf("Close of a Comm with messages that nobody has received: %v", e)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", s.step, err)
		}
	}
	if n == 1 {
		return nil
	}
	out, in := []uint32{uint32(me)}, []uint32{0}
	for _, m := range []func() ccl.Message{
		func() ccl.Message { return ccl.LinkTo(s.c, (me+1)%n, roomTag).Send(ccl.BufOf(out)) },
		func() ccl.Message { return ccl.LinkTo(s.c, (me+n-1)%n, roomTag).Recv(ccl.BufOf(in)) },
	} {
		if err := m().Wait(s.ctx); err != nil {
			return fmt.Errorf("step %d: a small message, sent before any is received: %w", s.step, err)
		}
	}
	if int(in[0]) != (me+n-1)%n {
		return s.wrongf("a small message from %d is %d", (me+n-1)%n, in[0])
	}
	return s.barrier()
}

// What a job sends while nobody calls anything: idleMost events of the network a second and host. A pulse is one.
const (
	idleMost  = 200
	idleSleep = 3 * time.Second
)

// lagging has one host stand still for a second while the others make calls. In each of them a rank is a little late, so
// that they tell each other more than that host takes in. Then nobody calls anything, and there is little to tell.
func (r *boxed) lagging(ctx context.Context, step int) error {
	behind := slices.Index(r.seats, r.b.lag.seat)
	if f := &r.b.fault; f.struck(r.b.host[r.b.lag.seat]) || f.kind != "none" && f.mild() {
		behind = -1 // it might be silent for too long
	}
	me := r.world.Rank()
	c, err := r.world.Split(ctx, is(me == behind), me)
	if err != nil {
		return fmt.Errorf("step %d: Split: %w", step, err)
	}
	defer c.Close()
	if err := ccl.Barrier(ctx, r.world); err != nil {
		return fmt.Errorf("step %d: %w", step, err)
	}
	if me == behind {
		r.host.Stop()
		time.Sleep(time.Second)
		r.host.Go()
	}
	x := []int32{1}
	for k := range 100 {
		if k%c.Size() == c.Rank() && c.Size() > 1 {
			time.Sleep(12 * time.Millisecond)
		}
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
			return fmt.Errorf("step %d: AllReduce %d beside a host that stands still: %w", step, k, err)
		}
	}
	if err := ccl.Barrier(ctx, r.world); err != nil {
		return fmt.Errorf("step %d: %w", step, err)
	}
	time.Sleep(idleSleep)
	_, before := r.net.Sum()
	time.Sleep(idleSleep)
	if _, after := r.net.Sum(); after-before > idleMost*len(r.b.host)*int(idleSleep/time.Second) {
		r.f.add("NOISE: %d events of the network in %v in which nobody calls anything", after-before, idleSleep)
	} else {
		r.note("%d events in %v", after-before, idleSleep)
	}
	return ccl.Barrier(ctx, r.world)
}
