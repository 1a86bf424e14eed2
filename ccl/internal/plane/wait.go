package plane

import (
	"context"
	"runtime"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/simhost"
)

// A Waiter is one wait: what to do when the looks have been fruitless. Every wait
// of the engine ends here, so that every wait notices a failure, a closed peer, a
// context that ends and the timeout.
type Waiter struct {
	laps  int
	Looks int
	began time.Time
	Nap   time.Duration // the last; not 0 once the wait has slept
	naps  int
	hasty int           // sleeps of await that ended at once, in vain
	late  time.Duration // by which the last of them ended later than it was to; less than 0: earlier
	Rests int           // of those that ended by themselves
	peer  int           // that was last noted to be waited for
	left  bool          // the rank waited for has been seen to have closed the Comm

	Round    uint32   // if not 0: the wait ends when all ranks of this host have posted it
	Several  bool     // ranks may end the wait
	Remote   bool     // a rank of another host may
	Arrivals Arrivals // if only ranks of other hosts may, and the wait can sleep until they do
	Awaited  Awaited  // the ranks that may, where these can be listed
}

// peers are the ranks that the wait is for, as far as is known: peer is one of them, -1 if none is known.
func (w *Waiter) peers(peer int) (list []int) {
	if w.Awaited != nil {
		var few [event.MissingMost]int32
		for _, r := range w.Awaited.Peers(few[:0]) {
			list = append(list, int(r))
		}
		return list
	}
	if peer >= 0 {
		list = append(list, peer)
	}
	return list
}

// Arrivals are what a wait is for, where that comes from other hosts.
type Arrivals interface {
	// Await blocks until something may have come, but no longer than d. It returns false, at once, if it cannot.
	Await(d time.Duration) bool
	// Moved is how much of it has moved.
	Moved() Moved
}

// Moved is how many bytes a call has sent or received, of how many.
type Moved struct{ Done, Of int64 }

// moved is how far the call has come, where that is known.
func (w *Waiter) moved() Moved {
	if w.Arrivals == nil {
		return Moved{}
	}
	return w.Arrivals.Moved()
}

const (
	lapsAwake = 16 // laps before the clock is looked at
	// laps before a rank with a core of its own sleeps that does not give way: some 25 microseconds
	lapsAbrupt = 64
	lapsRemote = 16                     // the same where each look is a system call, and a lap a few of them
	lapsMax    = 4096                   // far more than awake takes, unless time stands still: testing/synctest
	awake      = 500 * time.Microsecond // of giving way, before sleeping
	NapMin     = 20 * time.Microsecond
	napMax     = 500 * time.Microsecond
	// for so long a rank sleeps until something arrives, before it looks for what else may end the
	// wait
	arriveMax = time.Millisecond

	napsExact = 64 // naps of a wait that are no longer than meant: some 30 ms

	hastyMost = 8 // sleeps of a wait that ended at once, and in vain, after which it takes naps
)

// lapsMost is lapsMax, or less in a simulation, whose time stands still until all sleep.
func lapsMost(j *Job) int {
	if j.Net.At != nil {
		return lapsAwake + 4
	}
	return lapsMax
}

// Pause gives way to others, at first for a moment, later by sleeping, unless the call must end.
// peer is the rank waited for,
// -1 if there are several.
func (c *Member) Pause(ctx context.Context, w *Waiter, peer int) *call.Fault {
	if n := c.Share.Asked.count.Load(); n != c.Share.Asked.served {
		c.Share.Asked.answer(n)
	}
	if f := c.Fate.cause.Load(); f != nil {
		return f
	}
	if c.Fate.word.Load() != 0 {
		if f := c.Aborted(); f != nil {
			return f
		}
	}
	if w.laps == 0 && c.Share.sleepers.Load() != 0 { // what this rank has posted may be what others sleep for
		wakeSleepers(c)
	}
	w.laps++
	if abrupt := c.Standing.Abrupt(w, peer); abrupt && w.laps < w.lapsAbrupt() && c.Share.Spins != SpinsCrowded {
		return nil
	} else if !abrupt && w.laps < lapsAwake {
		c.GiveWay(w.laps)
		return nil
	}
	return pauseLong(ctx, c, w, peer)
}

// pauseLong is Pause of a wait that has given way some times in vain. It looks at all that may end the wait.
func pauseLong(ctx context.Context, c *Member, w *Waiter, peer int) *call.Fault {
	rare := w.laps&15 == 0 || w.Nap > 0 // for looks at words that others write
	if rare {
		if f := c.Order.otherCall(); f != nil {
			return c.Stop(f)
		}
	}
	if err := ctx.Err(); err != nil {
		return c.Stop(Unfinished(c, err, err, w.peers(peer)...))
	}
	if isOverdue(c) {
		return c.Stop(overdue(c, w.peers(peer)...))
	}
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	if w.left || rare {
		// Who closes may have done its part just before: one more look decides.
		if f := c.Share.closedPeer(peer); f != nil && w.left {
			return c.Stop(f)
		} else if f != nil {
			w.left = true
			return nil
		}
	}
	// Where ranks get their turn late, nothing arrives within a moment: to give way only takes the turns of others.
	if waited := now.Sub(w.began); waited < awake && w.laps < lapsMost(c.Site.Job) &&
		(w.Arrivals == nil || c.Standing.late < tick) {
		pauseAwake(ctx, c, w, peer, awake-waited)
	} else {
		pauseAsleep(ctx, c, w, peer, waited)
	}
	proc.HaltFork()
	simhost.Live(c.Site.Job.Net.At)
	return nil
}

// pauseAwake is Pause of a wait that is not to sleep for long yet, but for left at most.
func pauseAwake(ctx context.Context, c *Member, w *Waiter, peer int, left time.Duration) {
	switch {
	case !c.Standing.Abrupt(w, peer):
		c.GiveWay(w.laps)
	case c.Standing.CanPark(w, peer):
		c.Park(ctx, w, peer, left)
	case !c.Standing.await(w, arriveMax) && !c.Site.Job.Time.naps.Nap(NapMin):
		c.GiveWay(w.laps)
	}
}

// pauseAsleep is Pause of a long wait: the call says that it sleeps, and for whom it waits, and does so.
func pauseAsleep(ctx context.Context, c *Member, w *Waiter, peer int, waited time.Duration) {
	if k := c.Current.running; k != nil {
		c.Current.running = nil
		c.noteSleep(k, w, peer)
		if c.Hooks.OnSleep != nil {
			c.Hooks.OnSleep(k)
		}
	} else if peer != w.peer || w.Nap == 0 {
		c.noteAgain(w, peer)
	}
	w.peer = peer
	c.Share.Local.Waits(c.Share.Me).Store(c.Order.Calls<<32 | uint64(peer+1))
	if c.Standing.CanPark(w, peer) {
		c.Park(ctx, w, peer, 0)
		return
	}
	// who has waited for seconds can wait a thousandth more
	w.Nap = max(NapMin, min(2*w.Nap, max(napMax, min(waited>>10, tick))))
	if !c.Standing.await(w, max(w.Nap, arriveMax, min(9*c.Standing.late, restMost(c.Site.Job)))) {
		c.sleep(w)
	}
}

// isOverdue reports whether the call under way has taken Options.Timeout.
func isOverdue(c *Member) bool {
	t := int64(c.Group.Timeout())
	if t <= 0 {
		return false
	}
	now := c.Clock.Now()
	return now-c.Current.began > t && c.Standing.IsOverdue(c.Current.began, now)
}

// lapsAbrupt is after how many laps a rank with a core of its own sleeps that does not give way.
func (w *Waiter) lapsAbrupt() int {
	if w.Arrivals != nil {
		return lapsRemote
	}
	return lapsAbrupt
}

// await sleeps in the kernel until what w is for may have come, but no longer than d. It returns
// false, soon, if it cannot, or should not: such a sleep keeps one of Go's processors. So
// goroutines that want one come first, and the program that computes beside a call on a Stream.
func (c *Standing) await(w *Waiter, d time.Duration) bool {
	if w.Arrivals == nil || c.note.onStream(c.current.running) || processorWanted() {
		return false
	}
	if c.Site.Job.Net.At != nil {
		return w.Arrivals.Await(d)
	}
	if !w.await(d) {
		return false
	}
	c.noteLate(w.late)
	return true
}

// processorWanted lets other goroutines run, and reports whether any wanted to.
func processorWanted() bool {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began) > NapMin
}

// await is that sleep. Of several goroutines none takes the last of Go's processors for it, and a
// wait that has been ended at once a few times, in vain, does so no more.
func (w *Waiter) await(d time.Duration) bool {
	n := int(parked.Add(1))
	defer parked.Add(-1)
	if n > 1 && n >= runtime.GOMAXPROCS(0) || w.hasty >= hastyMost {
		return false
	}
	began := time.Now()
	if !w.Arrivals.Await(d) {
		return false
	}
	took := time.Since(began)
	if took < NapMin {
		w.hasty++
	}
	w.late = took - d
	return true
}

// sleep takes a nap. The first are as short as they should be; not all, since time may stand still until all sleep
// (testing/synctest).
func (c *Member) sleep(w *Waiter) {
	if w.naps++; w.naps > napsExact || !c.Site.Job.Time.naps.Nap(w.Nap) {
		time.Sleep(w.Nap)
	}
}

// Interrupted is why a call under way must end, nil if it need not.
func (c *Member) Interrupted(ctx context.Context) *call.Fault {
	if f := c.Fate.cause.Load(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return c.Stop(Unfinished(c, err, err))
	}
	if isOverdue(c) {
		return c.Stop(overdue(c))
	}
	return nil
}

// GiveWay lets others run: goroutine ranks of this process, and, since the Go scheduler never gives
// way to another process, other processes; not at first where none of the job's has anything to do
// on this processor (spread.go).
func (c *Member) GiveWay(lap int) {
	if c.Share.Spins == SpinsCrowded && c.staysOn(lap) {
		return
	}
	if c.Site.Job.Net.At != nil {
		runtime.Gosched()
		return
	}
	if int(c.Site.Job.Life.here.Load()) > 1 || c.Standing.note.onStream(c.Current.running) {
		runtime.Gosched()
		proc.HaltFork()
		if lap&3 != 0 || !c.Site.Here.Host.Shared() {
			return
		}
	}
	c.Standing.yield()
}

// onStream reports whether the call that waits is one on a Stream. It is running, or nil once it has slept.
func (n *note) onStream(running *call.Call) bool {
	if running != nil {
		return running.Queued
	}
	n.Lock()
	defer n.Unlock()
	return n.asleep && n.queued
}

// Abrupt reports whether a wait for peer is to sleep soon, and not to give way before: where
// processes that are of no job compute on this rank's core. What comes over TCP rings nobody: the
// rank sleeps in poll(2) where it can, and else takes naps.
func (c *Standing) Abrupt(w *Waiter, peer int) bool {
	y := &c.Site.Job.Time.Yielding
	if y.Until.Load() == 0 || y.yields(c.Site.Job.Time.Coarse.Exact()) { // no clock is asked where they have never ended
		return false
	}
	return (y.others.Load() || ringsPay(c.Site.Job.World.Topo.Locals(c.Site.Here.Node), c.share.Host.Processors())) &&
		(w.Remote || c.share.Host.Shared() && c.CanPark(w, peer))
}

// ringsPay reports whether so many ranks of a host may ring each other in each call, whatever made
// their yields late. Beside a busy loop per core, 3 and 4 ranks of two cores that do so are 20
// times as fast as those that give way. But with more than two ranks to a core a late yield may be
// the work of the ranks themselves, and each rank is rung several times in a call: that pays only
// if other programs run as well.
func ringsPay(ranks, processors int) bool { return ranks <= 2*processors }

// Aborted returns why another rank of this host says the Comm has failed; nil
// while the reason is still on its way.
func (c *Member) Aborted() *call.Fault {
	c.Site.Scan()
	return c.Fate.cause.Load()
}

// closedPeer finds out whether the rank waited for has closed the Comm.
func (c *Share) closedPeer(peer int) *call.Fault {
	node := c.group.Topology().Node(c.group.Rank())
	for r := range c.N {
		if c.Local.State(r).Load() == region.StateClosed {
			left := c.group.Topology().Rank(node, r)
			if peer < 0 || left == peer {
				return c.closedBy(left)
			}
		}
	}
	return nil
}

// CanPark reports whether a wait for peer ends by a post inside this host, and may sleep until then: beside calls on
// Streams a program computes, from which it may not keep the last processor.
func (c *Standing) CanPark(w *Waiter, peer int) bool {
	return !w.Remote && (c.group.Topology().Nodes() == 1 || peer >= 0 && c.group.IsHere(peer)) &&
		!(c.share.Host.Shared() && c.note.onStream(c.current.running) && takesLastProcessor())
}

// noteAgain notes that the sleeping call waits once more, perhaps for another rank.
func (c *Member) noteAgain(w *Waiter, peer int) {
	n := &c.Standing.note
	n.Lock()
	n.on.peer, n.pair.moved = int32(peer), w.moved()
	n.on.list(w)
	n.Unlock()
}

// noteSleep notes that the call under way sleeps, waiting for peer.
func (c *Member) noteSleep(k *call.Call, w *Waiter, peer int) {
	n := &c.Standing.note
	n.Lock()
	n.pair = pairNote{to: -1, moved: w.moved()}
	switch {
	case k.Kind == call.SendRecv:
		n.pair.to = int32(k.To)
	case k.Kind.Pairwise():
		n.pair.several = w.Several && !c.Group.Strict() // else the other message is the confirmation
	}
	n.asleep, n.call, n.queued, n.calls, n.on.peer, n.since = true, k.Record, k.Queued, c.Order.Calls, int32(peer),
		c.Current.began
	n.on.list(w)
	n.Unlock()
}
