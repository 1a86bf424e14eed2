package reach

import (
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/lived"
)

// Ranks of one process touch each other's memory by its address, and in inPlace.allReduce and
// gatherByWrite ranks of any process write into each other's memory, if it is MakeSlice's. A rank
// that does so says so first, and then looks at the abort word, before it makes a pointer of an
// address, and again between pieces. A rank whose call has failed has stored the abort word, and
// then looks which ranks touch. By Dekker's argument one of the two sees what the other has stored:
// a rank that is not seen to touch has not begun, and will not. So a call that has failed waits,
// before it returns, until no rank touches its memory any more. Then the program may do with it
// what it likes: the collector may have it, FreeSlice may unmap it.
//
// A rank of another process may have been stopped while it wrote, or killed: it is waited for, but
// not for long. Then what it may write into is replaced by other memory (shm.TakeBack). Memory can
// be replaced by pages only, and of a page of which another part of the slice has the rest nothing
// may be lost, whatever the program or another Comm does there at the moment. So others write only
// into pages that are a result's own; the edges of a result its owner writes itself (see inPlace in
// package rounds), or, in Gather, all of a result that has any. Nobody else ever has them to write
// into, and nothing has to be replaced there.

// MayTouch says that this rank is about to touch the memory of others.
func (c *Reach) MayTouch() *call.Fault {
	if c.touching {
		return nil
	}
	c.touching, c.Untidy = true, true
	c.local.Touches(c.me).Store(1)
	return c.InterruptedNow()
}

// Touched says that this rank does not touch it any more.
func (c *Reach) Touched() {
	if c.touching {
		c.touching = false
		c.local.Touches(c.me).Store(0)
	}
}

// here is what lies at p in this process.
func (c *Reach) here(p *shm.Span) (unsafe.Pointer, *call.Fault) {
	inject.At("cpu.touch")
	if f := c.MayTouch(); f != nil {
		return nil, f
	}
	at := *(*unsafe.Pointer)(unsafe.Pointer(&p.At))
	inject.At("cpu.touched")
	return at, nil
}

const (
	reclaimAfter = 10 * time.Millisecond // pieces take some 20 microseconds, but processes may be kept waiting for a core
	reclaimFor   = time.Second           // where memory cannot be replaced
	leaveAfter   = 10 * time.Second      // a rank that has ended in the midst of a call by runtime.Goexit, or panicked
)

// Reclaim returns when no rank of another process writes into dst any more, after a call has failed with f.
func (c *Reach) Reclaim(dst []byte, f *call.Fault) *call.Fault {
	if f == nil || !c.rank.Site.Here.Host.Shared() {
		return f
	}
	c.awaitOthers(reclaimAfter, c.mayGoOn)
	if c.awaitOthers(0, nil) || shm.TakeBack(dst) {
		return f
	}
	c.awaitOthers(reclaimFor, nil)
	return f
}

// Tidy ends what a call has begun beside its result; f is why it has failed, if it has.
func (c *Reach) Tidy(f *call.Fault) {
	c.Untidy, c.lending.lent = false, [2][]byte{}
	c.Touched()
	if c.views.stale {
		c.sweep()
	}
	if f != nil {
		c.awaitOthers(leaveAfter, c.isHere)
	}
}

// awaitOthers waits, but not for longer than that, until no other rank of this host touches the memory of others, and
// reports whether none does; if of is not nil, of those ranks that it holds for.
func (c *Reach) awaitOthers(longest time.Duration, of func(r int) bool) bool {
	busy := func() bool {
		for r := range c.n {
			if r != c.me && c.local.Touches(r).Load() != 0 && (of == nil || of(r)) {
				return true
			}
		}
		return false
	}
	var over func() bool
	for lap := 1; busy(); lap++ {
		if over == nil {
			over = lived.For(longest)
		} else if over() {
			return false
		}
		if c.rank.GiveWay(lap); lap&1023 == 0 {
			time.Sleep(plane.NapMin) // time may stand still until all sleep: testing/synctest
		}
	}
	return true
}

// isHere reports whether rank r of this host is in this process.
func (c *Reach) isHere(r int) bool {
	s := c.rank.Site
	return !s.Here.Host.Shared() ||
		s.Here.Procs[s.Job.World.Topo.Local(c.rank.Group.World(c.rank.Group.LocalRank(r)))] == s.Here.Mine
}

// mayGoOn reports whether rank r of this host is not known to be lost.
func (c *Reach) mayGoOn(r int) bool {
	return !c.rank.Site.Job.IsLost(c.rank.Group.World(c.rank.Group.LocalRank(r)))
}
