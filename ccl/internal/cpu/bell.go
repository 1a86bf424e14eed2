package cpu

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// A rank that has waited for long inside its host sleeps until it is rung. Before it does it says so in its bell, a word of
// the region, and in the region's number of sleepers, and looks once more. A rank that has posted something looks at that
// number, when its call ends or has to wait itself, and rings those that sleep until it posts: by a channel where all ranks
// of the host are in one process, else through the kernel, which waits at the address of the bell (futex(2)) and wakes the
// sleeper's thread, without a way through the Go scheduler.
//
// Nothing orders the poster's store before its look at the number on amd64: the store may still wait in its core's buffer
// while the number is read. A sleeper gives way once, or lets a microsecond pass, between saying that it sleeps and its
// last look, which takes longer than a store waits. Should that fail all the same, as where a poster has died before it rang, the tick of the monitor
// wakes each sleeper of its process: no wait depends on a bell, only how soon it ends.
//
// A ring costs the poster a system call, and none at all while nobody sleeps: a load of a line that only sleepers write.
type bell struct {
	rung  chan struct{} // capacity 1; where ranks of several processes ring, the kernel is in its place
	set   bool          // this rank is one of the sleepers; its goroutine's
	sleep atomic.Bool   // the same, for the monitor and the ringer
}

// What a bell says.
const (
	bellAwake  = iota
	bellAnyone // any rank's post may be what this one waits for
	bellFrom   // + the rank of this host whose post it is
)

// canRest reports whether a wait for peer ends by a post inside this host, and may sleep until then: beside calls on
// Streams a program computes, from which it may not keep the last processor.
func (c *Member) canRest(w *waiter, peer int) bool {
	return !w.remote && (c.topo.Nodes() == 1 || peer >= 0 && c.topo.Node(peer) == c.topo.Node(c.rank)) &&
		!(c.host.Shared() && c.note.onStream() && takesLastProcessor())
}

// onStream reports whether the call that sleeps is one on a Stream.
func (n *note) onStream() bool {
	n.Lock()
	defer n.Unlock()
	return n.queued
}

// resting are the goroutines of this process that sleep in the kernel until they are rung. Such a sleep keeps one of Go's
// processors for up to 20 ms, until the scheduler sees that it is a long one.
var resting atomic.Int32

// takesLastProcessor reports whether one more of them could keep all.
func takesLastProcessor() bool { return int(resting.Load())+1 >= runtime.GOMAXPROCS(0) }

// rest is a part of a wait for peer: the first time it sets the bell, for the caller to look once more; then it sleeps
// until this rank is rung, or limit is over, if that is positive.
func (c *Member) rest(ctx context.Context, w *waiter, peer int, limit time.Duration) {
	want := uint64(bellAnyone)
	if peer >= 0 && !w.several {
		want = bellFrom + uint64(c.topo.Local(peer))
	}
	b := &c.bell
	if w.nap == 0 || c.local.bell(c.me).Load() != want {
		w.nap = napMin
		if !b.set {
			b.set = true
			b.sleep.Store(true)
			c.local.sleepers().Add(1)
		}
		select {
		case <-b.rung: // of an earlier sleep
		default:
		}
		c.local.bell(c.me).Store(want)
		c.site.courtesy.drain(c.site.born)
		return
	}
	if c.host.Shared() {
		c.restInKernel(ctx, w, want, limit)
		return
	}
	select {
	case <-b.rung:
	case <-ctx.Done():
	}
}

const (
	shortRest  = time.Millisecond // at most so long does a call with a context sleep at first
	shortRests = 8
)

// restInKernel sleeps until the bell does not say want, or ctx ends. To hear of that costs memory, so at first the call
// looks at ctx every millisecond. A limit that the caller has is as short.
func (c *Member) restInKernel(ctx context.Context, w *waiter, want uint64, limit time.Duration) {
	if limit == 0 && ctx.Done() != nil {
		if w.rests < shortRests {
			w.rests++
			limit = shortRest
		} else {
			defer context.AfterFunc(ctx, c.rouseCall)()
		}
	}
	resting.Add(1)
	defer resting.Add(-1)
	proc.SleepWhile(c.local.bell(c.me), want, limit)
}

// rise ends what rest began.
func (c *Member) rise() {
	if b := &c.bell; b.set {
		b.set = false
		b.sleep.Store(false)
		c.local.bell(c.me).Store(bellAwake)
		c.local.sleepers().Add(^uint64(0))
	}
}

// wake rings the ranks that sleep until this one has posted.
func (c *Member) wake() {
	if c.local.sleepers().Load() != 0 {
		for r := range c.n {
			if c.claimRing(r, false) {
				c.site.ringRank(c, r)
			}
		}
	}
}

// claimRing reports whether it is this rank that has to ring rank r of this host: that sleeps until this one has posted or,
// if all is set, sleeps at all, and nobody else has claimed it.
func (c *Member) claimRing(r int, all bool) bool {
	p := c.local.bell(r)
	v := p.Load()
	if v == bellAwake || r == c.me || !all && v != bellAnyone && v != bellFrom+uint64(c.me) {
		return false
	}
	return p.CompareAndSwap(v, bellAwake)
}

// sleeping claims to ring all ranks of this host that sleep, and lists them.
func (c *Member) sleeping() (list []int) {
	if c.local.sleepers().Load() == 0 {
		return nil
	}
	for r := range c.n {
		if c.claimRing(r, true) {
			list = append(list, r)
		}
	}
	return list
}

// ringAll rings the ranks of this host that list names, for which this one has claimed to.
func (c *Member) ringAll(list []int) {
	for _, r := range list {
		c.site.ringRank(c, r)
	}
}

// ringRank rings rank r of this host in the Comm that c is an end of, for which it has been claimed. In a Comm that is
// gone the kernel finds nothing at the address, and nobody sleeps.
func (s *site) ringRank(c *Member, r int) {
	if c.host.Shared() {
		proc.WakeSleeper(c.local.bell(r))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.comms[c.id] {
		if x.me == r && x.site == s {
			x.rouseCall()
		}
	}
}

// rouseCall wakes the call of c, if it sleeps or is about to.
func (c *Member) rouseCall() {
	switch {
	case !c.bell.sleep.Load():
	case c.host.Shared():
		c.life.Lock()
		defer c.life.Unlock()
		if !c.gone { // else there is no call, nor the word
			c.local.bell(c.me).Store(bellAwake) // which a call that does not sleep yet sees
			proc.WakeSleeper(c.local.bell(c.me))
		}
	default:
		select {
		case c.bell.rung <- struct{}{}:
		default: // it is being woken already
		}
	}
}
