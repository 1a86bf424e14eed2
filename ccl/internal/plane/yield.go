package plane

import (
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// yielding decides whether a rank of this process that waits gives its core to other processes
// again and again (sched_yield(2)). Among ranks that wait and give way in turns that costs
// microseconds. Beside a process that computes it costs a whole time slice of that process, which
// is milliseconds: then the rank sleeps in the kernel at once, until it is rung, and the kernel
// gives it the core when that happens.
//
// The process learns it from what its yields took. A late one, after which another process has
// computed meanwhile, counts against them, and one that a process that gives way as well has
// answered counts a little for them. Some late ones in a short time, with few answered ones among
// them, end the yields for a term. One term soon after another is twice as long. Where two jobs
// share the cores one yield of a thousand is late; beside a busy loop nineteen of twenty are.
//
// Times are since the job began.
type yielding struct {
	Until  atomic.Int64 // no yields before this time
	term   atomic.Int64 // how long the last term was
	last   atomic.Int64 // when the last late yield ended that counts
	doubts atomic.Int64 // what late yields weigh, less what was answered since
	others atomic.Bool  // as the last term began, programs that are not of the job wanted the processors
}

const (
	yieldAnswered = 2 * time.Microsecond    // a yield that took so long let another process run
	yieldLate     = 300 * time.Microsecond  // and this one was not given back;
	yieldLateMany = 1200 * time.Microsecond // where ranks outnumber cores, other ranks may have been at work for less
	lateWeight    = 8                       // what a late one weighs; an answered one weighs 1
	doubtsMax     = 4 * lateWeight
	doubtsAgain   = 2 * lateWeight // with which the yields begin again after a term
	doubtsPass    = 50 * time.Millisecond
	termFirst     = 100 * time.Millisecond
	termMost      = time.Second
	lateFor       = 5 * time.Second // after a term
)

// yields reports whether a rank that waits is to give way to other processes.
func (c *yielding) yields(now time.Duration) bool { return int64(now) >= c.Until.Load() }

// late reports whether yields have ended a short while ago, or some have just been late.
func (c *yielding) late(now time.Duration) bool {
	return c.doubts.Load() > 0 || c.Until.Load() != 0 && int64(now) < c.Until.Load()+int64(lateFor)
}

// yielded learns from a yield that ended now and took so long that another process has run
// meanwhile, of a rank that looks so often before it gives way. It reports whether a term begins.
// Goroutines that yield at once may lose the observation of one of them.
func (c *yielding) yielded(now, took time.Duration, spins int) bool {
	late := yieldLate
	if spins == SpinsCrowded {
		late = yieldLateMany
	}
	doubts := c.doubts.Load()
	if took < late {
		if doubts > 0 {
			c.doubts.Store(doubts - 1)
		}
		return false
	}
	until := c.Until.Load()
	if int64(now) < until {
		return false // it began before the term
	}
	if int64(now-took)-c.last.Load() > int64(doubtsPass) {
		doubts = 0
	}
	if doubts += lateWeight; doubts < doubtsMax {
		c.doubts.Store(doubts)
		c.last.Store(int64(now))
		return false
	}
	term := int64(termFirst)
	if last := c.term.Load(); int64(now) < until+last {
		term = min(2*last, int64(termMost))
	}
	if !c.Until.CompareAndSwap(until, int64(now)+term) {
		return false
	}
	c.term.Store(term)
	c.doubts.Store(doubtsAgain)
	c.last.Store(int64(now) + term)
	return true
}

// yield gives way to other processes, and learns from it.
func (c *Standing) yield() {
	y := &c.Site.Job.Time.Yielding
	began := c.Site.Job.Time.Coarse.Exact()
	proc.Yield()
	now := c.Site.Job.Time.Coarse.Exact()
	if now-began < yieldAnswered {
		return // nobody else wanted the core
	}
	if y.yielded(now, now-began, c.share.Spins) {
		y.others.Store(c.othersRun(proc.Runnable(), proc.Uptime()))
	}
}

// othersRun reports whether other programs want the processors, of which so many threads run or
// could. Ranks that sleep are none of these: beside busy loops some always do, and counted as
// runnable they would hide the loops.
func (c *Standing) othersRun(runnable int, now time.Duration) bool {
	return othersRun(runnable, c.Site.Job.World.Topo.Locals(c.Site.Here.Node)-c.share.asleep(now),
		c.share.Host.Processors())
}

// othersRun reports whether of so many threads that run or could some are not of the job, whose
// awake ranks all look and give way as a term begins: one for every two processors, and two at
// least, since Go has threads of its own.
func othersRun(runnable, awake, processors int) bool { return runnable >= awake+max(2, processors/2) }

// drain lets more time pass than a store waits in its core's buffer.
func (c *Standing) drain() {
	began := c.Site.Job.Time.Coarse.Exact()
	if c.Site.Job.Time.Yielding.yields(began) {
		c.yield()
		return
	}
	for c.Site.Job.Time.Coarse.Exact()-began < time.Microsecond {
	}
}
