package cpu

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// A waiter is one wait: what to do when the looks have been fruitless. Every wait
// of the engine ends here, so that every wait notices a failure, a closed peer, a
// context that ends and the timeout.
type waiter struct {
	laps  int
	looks int
	began time.Time
	nap   time.Duration // the last; not 0 once the wait has slept
	naps  int
	rests int  // of those that ended by themselves
	peer  int  // that was last noted to be waited for
	left  bool // the rank waited for has been seen to have closed the Comm

	several bool // ranks may end the wait
	remote  bool // a rank of another host may
}

const (
	lapsAwake  = 16                     // laps before the clock is looked at
	lapsAbrupt = 64                     // laps before a wait that does not give way sleeps: some 25 microseconds
	lapsMax    = 4096                   // far more than awake takes, unless time stands still: testing/synctest
	awake      = 500 * time.Microsecond // of giving way, before sleeping
	napMin     = 20 * time.Microsecond
	napMax     = 500 * time.Microsecond

	napsExact = 64 // naps of a wait that are no longer than meant: some 30 ms
)

// pause gives way to others, at first for a moment, later by sleeping. peer is the
// rank waited for, -1 if there are several.
func (c *Member) pause(ctx context.Context, w *waiter, peer int) *Fault {
	if f := c.cause.Load(); f != nil {
		return f
	}
	if c.local.abort().Load() != 0 {
		if f := c.aborted(); f != nil {
			return f
		}
	}
	if w.laps == 0 {
		c.wake() // what this rank has posted may be what others sleep for
	}
	w.laps++
	if abrupt := c.abrupt(w, peer); abrupt && w.laps < lapsAbrupt {
		return nil
	} else if !abrupt && w.laps < lapsAwake {
		c.giveWay(w.laps)
		return nil
	}
	if w.laps&15 == 0 || w.nap > 0 {
		if f := c.otherCall(); f != nil {
			return c.stop(f)
		}
	}
	if err := ctx.Err(); err != nil {
		return c.stop(c.late(err, err, c.missing(peer)))
	}
	if t := c.opt.Timeout; t > 0 && c.site.clock()-c.began > int64(t) {
		return c.stop(c.overdue(c.missing(peer)))
	}
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	waited := now.Sub(w.began)
	if w.left || w.laps&15 == 0 || w.nap > 0 {
		// Who closes may have done its part just before: one more look decides.
		if f := c.someoneLeft(peer); f != nil && w.left {
			return c.stop(f)
		} else if f != nil {
			w.left = true
			return nil
		}
	}
	if waited < awake && w.laps < lapsMax {
		if c.abrupt(w, peer) {
			c.rest(ctx, w, peer, awake-waited)
			proc.HaltFork()
		} else {
			c.giveWay(w.laps)
		}
		return nil
	}
	if k := c.running; k != nil {
		c.running = nil
		c.doze(k, peer)
		if c.opt.OnSleep != nil {
			c.opt.OnSleep(k)
		}
	} else if peer != w.peer {
		c.turnTo(peer)
	}
	w.peer = peer
	c.local.waits(c.me).Store(c.calls<<32 | uint64(peer+1))
	if c.canRest(w, peer) {
		c.rest(ctx, w, peer, 0)
		proc.HaltFork()
		return nil
	}
	w.nap = max(napMin, min(2*w.nap, max(napMax, min(waited>>10, tick)))) // who has waited for seconds can wait a thousandth more
	c.sleep(w)
	proc.HaltFork()
	return nil
}

// sleep takes a nap. The first are as short as they should be; not all, since time may stand still until all sleep
// (testing/synctest).
func (c *Member) sleep(w *waiter) {
	if w.naps++; w.naps > napsExact || !c.site.naps.Nap(w.nap) {
		time.Sleep(w.nap)
	}
}

// otherCall finds a rank of this host that is in another call of the same number:
// ranks that wait for different peers find it by no message.
func (c *Member) otherCall() *Fault {
	mine := c.local.entered(c.me).Load()
	for r := range c.n {
		if w := c.local.entered(r).Load(); w>>32 == mine>>32 && w != mine {
			return c.differs(r, c.calls)
		}
	}
	return nil
}

// interrupted is why a call under way must end, nil if it need not.
func (c *Member) interrupted(ctx context.Context) *Fault {
	if f := c.cause.Load(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.stop(ctxFault(err, nil))
	}
	if t := c.opt.Timeout; t > 0 && c.site.clock()-c.began > int64(t) {
		return c.stop(fault(Timeout, -1, "not done after %v", t))
	}
	return nil
}

// giveWay lets others run: goroutine ranks of this process, and, since the Go
// scheduler never gives way to another process, other processes.
func (c *Member) giveWay(lap int) {
	if int(c.site.here.Load()) > 1 {
		runtime.Gosched()
		proc.HaltFork()
		if lap&3 != 0 || !c.site.host.Shared() {
			return
		}
	}
	c.site.courtesy.yield(c.site.born)
}

// abrupt reports whether a wait for peer is to sleep soon, and not to give way before: where processes that are of no job
// compute on this rank's core. Where ranks outnumber processors each waits for the turns of the others anyhow.
func (c *Member) abrupt(w *waiter, peer int) bool {
	return c.host.Shared() && !c.site.courtesy.yields(time.Since(c.site.born)) && c.spins != spinsCrowded && c.canRest(w, peer)
}

// stop fails the Comm with f and returns what it failed with.
func (c *Member) stop(f *Fault) *Fault {
	c.Fail(f)
	return c.settle(f)
}

// settle waits for the cause to be decided; f is what this rank believes.
func (c *Member) settle(f *Fault) *Fault {
	for over := c.site.outlives(2 * settleFor); c.cause.Load() == nil; {
		if c.closed.Load() || over() {
			c.failHere(f) // the job is over, or its log is stuck: nobody else will say
			break
		}
		time.Sleep(200 * time.Microsecond)
		c.site.scan()
	}
	if cause := c.cause.Load(); cause != nil {
		return cause
	}
	return f
}

// aborted returns why another rank of this host says the Comm has failed; nil
// while the reason is still on its way.
func (c *Member) aborted() *Fault {
	c.site.scan()
	return c.cause.Load()
}

// someoneLeft finds out whether the rank waited for has closed the Comm.
func (c *Member) someoneLeft(peer int) *Fault {
	node := c.topo.Node(c.rank)
	for r := range c.n {
		if c.local.state(r).Load() == stateClosed {
			left := c.topo.Rank(node, r)
			if peer < 0 || left == peer {
				return fault(Closed, left, "")
			}
		}
	}
	return nil
}

// missing lists who has not arrived: the ranks that have not come to the collective that this one is in, as far as
// they have told. Else it is the rank waited for, or, if that waits itself, the one it waits for: on this host, and
// where this call is point-to-point in whatever call, on any host.
func (c *Member) missing(peer int) []int {
	c.note.Lock()
	pairwise := c.note.asleep && isPairwise(c.note.call.Kind)
	c.note.Unlock()
	var m []int
	if !pairwise {
		if m = c.behind(); len(m) > 0 {
			return m
		}
	}
	if c.lockstep {
		for r := range c.n {
			if r != c.me && int32(c.posted(r)-c.round) < 0 {
				m = append(m, c.localRank(r))
			}
		}
	}
	if len(m) > 0 || peer < 0 {
		return m
	}
	first := peer
	for range c.Size() {
		if c.topo.Node(peer) != c.topo.Node(c.rank) {
			next := c.told(peer)
			if !pairwise || next < 0 {
				return []int{peer}
			}
			peer = next
			continue
		}
		r := c.topo.Local(peer)
		w := c.local.waits(r).Load()
		next := int(w&math.MaxUint32) - 1 // -1: it does not wait, or for several
		if pairwise && next < 0 || !pairwise && int32(uint32(c.local.entered(r).Load()>>32)-uint32(c.calls)) < 0 {
			return []int{peer}
		}
		if next < 0 || !pairwise && w>>32 != c.calls&math.MaxUint32 {
			return nil // it is in this call, and at work
		}
		peer = next
	}
	if c.topo.Node(first) != c.topo.Node(c.rank) {
		return []int{first}
	}
	return nil // they wait for each other
}

// told is the rank that rank r of another host has said that it waits for, -1 if none.
func (c *Member) told(r int) int {
	for _, s := range c.site.standing(c.id) {
		if int(s.Rank) == r && s.Doing == Waits {
			return int(s.Peer)
		}
	}
	return -1
}

// posted is the last round that rank r of this host has posted, as far as the last
// rounds of this rank tell.
func (c *Member) posted(r int) uint32 {
	last := c.round - c.local.depth
	for i := range c.local.depth {
		if v := uint32(atomic.LoadUint64(c.local.flag(r, c.round-i)) >> 32); int32(v-last) > 0 {
			last = v
		}
	}
	return last
}

func ctxFault(err error, missing []int) *Fault {
	code := Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = Timeout
	}
	peer := -1
	if len(missing) > 0 {
		peer = missing[0]
	}
	return &Fault{Code: code, Peer: peer, Missing: missing, Own: true, Err: err}
}

// await returns when rank r of this host has posted round, in the call that k is.
func (c *Team) await(ctx context.Context, k *Call, r int, round uint32) *Fault {
	p, want := c.local.flag(r, round), uint64(round)<<32|uint64(k.Hash)
	if atomic.LoadUint64(p) == want {
		return nil
	}
	var w waiter
	for {
		for range c.spins {
			if atomic.LoadUint64(p) == want {
				return nil
			}
		}
		v := atomic.LoadUint64(p)
		if v == want {
			return nil
		}
		if uint32(v>>32) == round || int32(uint32(v>>32)-round) > 0 {
			return c.stop(c.differs(r, k.place))
		}
		if f := c.pause(ctx, &w, c.localRank(r)); f != nil {
			return f
		}
	}
}

// differs reports that rank r of this host has made another call, the one of that
// number or one of the last before it.
func (c *Member) differs(r int, place uint64) *Fault {
	f := fault(Mismatch, c.localRank(r), "")
	for i := range min(uint64(c.local.kept-1), place) {
		mine, ok := c.made(c.me, place-i)
		theirs, known := c.made(r, place-i)
		if !ok || !known || mine.Hash == theirs.Hash {
			break
		}
		f.Mine, f.Theirs = &mine, &theirs // hashes are of all calls so far: the first counts
	}
	return f
}
