package cpu

import "time"

// In one kind of call ranks write into each other's memory: directAllReduce. A rank that does says so first, and looks
// at the abort word between pieces. So a rank whose call has failed can wait, before it returns, until nobody writes into
// its memory any more: it has stored the abort word, and then looks who writes. By Dekker's argument one of the two sees
// what the other has stored. Who is not seen to write has not begun, and will not.
//
// A rank of another process may have been stopped while it wrote, or killed: it is waited for, but not for long. Then
// what it may write into is replaced by other memory (takeBack). Memory can be replaced by pages only, and of a page of
// which another part of the slice has the rest nothing may be lost, whatever the program or another Comm does there at
// the moment. So others write only into pages that are a result's own; the edges of a result its owner writes itself
// (see edges). What was written there before stays, and nothing is left to be replaced.

func (c *Comm) mayWrite() *Fault {
	c.local.writes(c.me).Store(1)
	return c.interruptedNow()
}

func (c *Comm) wrote() { c.local.writes(c.me).Store(0) }

const (
	reclaimAfter = 10 * time.Millisecond // pieces take some 20 microseconds, but processes may be kept waiting for a core
	reclaimFor   = time.Second           // where memory cannot be replaced
)

// reclaim returns when nobody writes into dst any more, after a call has failed with f.
func (c *Comm) reclaim(dst []byte, f *Fault) *Fault {
	if f == nil {
		return nil
	}
	if !c.site.host.shared() { // no rank of this process stands still for itself
		for lap := 0; c.othersWrite(false); lap++ {
			c.giveWay(lap)
		}
		return f
	}
	began := time.Now()
	for lap := 0; c.othersWrite(true) && time.Since(began) < reclaimAfter; lap++ {
		c.giveWay(lap)
	}
	if !c.othersWrite(false) || takeBack(dst) {
		return f
	}
	for lap := 0; c.othersWrite(false) && time.Since(began) < reclaimFor; lap++ {
		c.giveWay(lap)
	}
	return f
}

// othersWrite reports whether another rank of this host says that it writes into the memory of others; if alive is set,
// one that is not known to be lost.
func (c *Comm) othersWrite(alive bool) bool {
	for r := range c.n {
		if r != c.me && c.local.writes(r).Load() != 0 && !(alive && c.site.isLost(c.members.world(c.localRank(r)))) {
			return true
		}
	}
	return false
}
