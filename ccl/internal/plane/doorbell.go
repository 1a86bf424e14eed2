package plane

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// A rank that has waited for long inside its host sleeps until it is rung. Before it does it says
// so in its bell, a word of the region, and in the region's number of sleepers, and looks once
// more. A rank that has posted something looks at that number, when its call ends or has to wait
// itself, and rings those that sleep until it posts: by a channel where all ranks of the host are
// in one process, else through the kernel, which waits at the address of the bell (futex(2)) and
// wakes the sleeper's thread, without a way through the Go scheduler.
//
// Nothing orders the poster's store before its look at the number on amd64: the store may still
// wait in its core's buffer while the number is read. A sleeper gives way once, or lets a
// microsecond pass, between saying that it sleeps and its last look, which takes longer than a
// store waits. Should that fail all the same, as where a poster has died before it rang, the tick
// of the monitor wakes each sleeper of its process: no wait depends on a bell, only how soon it
// ends.
//
// A ring costs the poster a system call, and none at all while nobody sleeps: a load of a line that
// only sleepers write.
type bell struct {
	rung  chan struct{} // capacity 1; where ranks of several processes ring, the kernel is in its place
	Set   bool          // this rank is one of the sleepers; its goroutine's
	sleep atomic.Bool   // the same, for the monitor and the ringer
}

// What a bell says.
const (
	bellAwake  = iota
	BellAnyone // any rank's post may be what this one waits for
	BellFrom   // + the rank of this host whose post it is

	// BellAll is in the lower half where the posts of all ranks in the round of the upper half are
	// waited for: the last of them rings. A sleeper that waited for one rank after another would be
	// rung as often as the logarithm of their number, in the mean.
	BellAll = math.MaxUint32
)

// parked are the goroutines of this process that sleep in the kernel, until they are rung or
// something arrives. Such a sleep keeps one of Go's processors for up to 20 ms, until the scheduler
// sees that it is a long one.
var parked atomic.Int32

// takesLastProcessor reports whether one more of them could keep all.
func takesLastProcessor() bool { return int(parked.Load())+1 >= runtime.GOMAXPROCS(0) }

// Park is a part of a wait for peer: the first time it sets the bell, for the caller to look once more; then it sleeps
// until this rank is rung, or limit is over, if that is positive. It reports whether it has slept.
func (c *Member) Park(ctx context.Context, w *Waiter, peer int, limit time.Duration) (slept bool) {
	want := uint64(BellAnyone)
	switch {
	case w.Round != 0:
		want = uint64(w.Round)<<32 | BellAll
	case peer >= 0 && !w.Several:
		want = BellFrom + uint64(c.Group.Topology().Local(peer))
	}
	b := &c.Standing.Bell
	if w.Nap == 0 || c.Share.Local.Bell(c.Share.Me).Load() != want {
		w.Nap = NapMin
		if !b.Set {
			b.Set = true
			b.sleep.Store(true)
			c.Share.Local.Sleepers().Add(1)
		}
		select {
		case <-b.rung: // of an earlier sleep
		default:
		}
		c.Share.Local.Bell(c.Share.Me).Store(want)
		c.Standing.drain()
		return false
	}
	if c.Share.Host.Shared() {
		parkInKernel(ctx, c, w, want, limit)
		return true
	}
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-b.rung:
	case <-ctx.Done():
	case <-over:
	}
	return true
}

const (
	shortRest  = time.Millisecond // so long does a call with a context sleep at first, and then twice as long
	ShortRests = 4                // of these
)

// parkInKernel sleeps until the bell does not say want, or ctx ends. To hear of that costs memory,
// so at first the call looks at ctx when it has slept as long as it had before, and at its deadline,
// unless ranks get their turn on a processor late. A limit that the caller has is as short.
func parkInKernel(ctx context.Context, c *Member, w *Waiter, want uint64, limit time.Duration) {
	if limit == 0 && ctx.Done() != nil {
		if w.Rests < ShortRests && c.Standing.late < tick {
			limit = shortRest << w.Rests
			if end, ends := ctx.Deadline(); ends {
				limit = max(min(limit, time.Until(end)), time.Microsecond)
			}
			w.Rests++
			defer func(began time.Time) { c.Standing.noteLate(time.Since(began) - limit) }(time.Now())
		} else {
			c.Standing.noteLate(-1)
			defer context.AfterFunc(ctx, c.WakeCall)()
		}
	}
	parked.Add(1)
	defer parked.Add(-1)
	rests := c.Share.Local.Rests(c.Share.Me)
	rests.Store(restsUntil(proc.Uptime(), limit))
	proc.SleepWhile(c.Share.Local.Bell(c.Share.Me), want, limit)
	rests.Store(0)
}

// restsUntil is when a sleep that begins now ends by itself, as Region.Rests has it.
func restsUntil(now, limit time.Duration) uint64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return uint64(now + limit)
}

// asleep counts the ranks of this host that sleep in the kernel. One that has been rung, or whose
// sleep is over, wants a processor, though it may not have one yet.
func (c *Share) asleep(now time.Duration) (n int) {
	for r := range c.N {
		if c.Local.Rests(r).Load() > uint64(now) && c.Local.Bell(r).Load() != bellAwake {
			n++
		}
	}
	return n
}

// Unpark ends what Park began.
func (c *Member) Unpark() {
	if b := &c.Standing.Bell; b.Set {
		b.Set = false
		b.sleep.Store(false)
		c.Share.Local.Bell(c.Share.Me).Store(bellAwake)
		c.Share.Local.Sleepers().Add(^uint64(0))
	}
}

// Wake rings the ranks that sleep until this one has posted.
func (c *Member) Wake() {
	if c.Share.sleepers.Load() != 0 {
		wakeSleepers(c)
	}
}

func wakeSleepers(c *Member) {
	var fence atomic.Uint32
	fence.Add(1) // of the last two ranks to post a round one sees both posts
	for r := range c.Share.N {
		if c.Share.claimRing(r, false) {
			c.Site.ringRank(c, r)
		}
	}
}

// RingFor rings rank r of c's host, if it sleeps until c's rank has posted, or any.
func RingFor(c *Member, r int) {
	if c.Share.claimRing(r, false) {
		c.Site.ringRank(c, r)
	}
}

// RingRank rings rank r of this host, if it sleeps, whatever for.
func (c *Member) RingRank(r int) {
	if c.Share.claimRing(r, true) {
		c.Site.ringRank(c, r)
	}
}

// claimRing reports whether it is this rank that has to ring rank r of this host: that sleeps until
// this one has posted or, if all is set, sleeps at all, and nobody else has claimed it.
func (c *Share) claimRing(r int, all bool) bool {
	p := c.Local.Bell(r)
	v := p.Load()
	if v == bellAwake || r == c.Me || !all && !c.ends(v) {
		return false
	}
	return p.CompareAndSwap(v, bellAwake)
}

// ends reports whether what this rank has posted may end the wait of one whose bell says v.
func (c *Share) ends(v uint64) bool {
	if uint32(v) != BellAll {
		return v == BellAnyone || v == BellFrom+uint64(c.Me)
	}
	round := uint32(v >> 32)
	for r := range c.N {
		if int32(uint32(atomic.LoadUint64(c.Local.Flag(r, round))>>32)-round) < 0 {
			return false
		}
	}
	return true
}

// ClaimSleepers claims to ring all ranks of this host that sleep, and lists them.
func (c *Share) ClaimSleepers() (list []int) {
	if c.Local.Sleepers().Load() == 0 {
		return nil
	}
	for r := range c.N {
		if c.claimRing(r, true) {
			list = append(list, r)
		}
	}
	return list
}

// Ring rings the ranks of list, which are on this host. This rank has claimed to ring them.
func (c *Member) Ring(list []int) {
	for _, r := range list {
		c.Site.ringRank(c, r)
	}
}

// ringRank rings rank r of this host in the Comm that c is an end of, for which it has been claimed. In a Comm that is
// gone the kernel finds nothing at the address, and nobody sleeps.
func (s *Site) ringRank(c *Member, r int) {
	if c.Share.Host.Shared() {
		proc.WakeSleeper(c.Share.Local.Bell(r))
		return
	}
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	for _, x := range s.Job.comms[c.Group.ID()] {
		if x.Share.Me == r && x.Site == s {
			x.WakeCall()
		}
	}
}

// WakeCall wakes the call of c, if it sleeps or is about to.
func (c *Member) WakeCall() {
	switch {
	case !c.Standing.Bell.sleep.Load():
	case c.Share.Host.Shared():
		c.Share.Look(func() { // else there is no call, nor the word
			c.Share.Local.Bell(c.Share.Me).Store(bellAwake) // which a call that does not sleep yet sees
			proc.WakeSleeper(c.Share.Local.Bell(c.Share.Me))
		})
	default:
		select {
		case c.Standing.Bell.rung <- struct{}{}:
		default: // it is being woken already
		}
	}
}

// noteLate notes by how much a sleep has ended later than it was to. One that has ended early tells nothing.
func (c *Standing) noteLate(by time.Duration) {
	if c.late /= 2; by >= 0 {
		c.late = by
	}
}
