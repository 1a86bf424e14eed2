package plane

import (
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Share is what a rank shares with the ranks of its host.
type Share struct {
	group    *group.Group
	Local    *region.Region
	Me, N    int            // this rank's place among them, and how many there are
	Host     *shm.Host      // whose memory that is; the site may have another by then, if this Comm is abandoned
	Ranks    []int          // their ranks in the Comm
	Spins    int            // looks before giving way
	Asked    Asked          // what the others want of this one while it waits
	sleepers *atomic.Uint64 // of Local
	prefers  readPreference // see setReadPreference
	apart    string         // see Apart

	life   sync.Mutex  // keeps the memory mapped while another goroutine looks at it
	gone   bool        // under life: the Comm's memory may be another's
	closed []int       // under life: other hosts whose ranks have all closed the Comm
	views  []shm.Place // what to unmap at the end
}

// Asked are the requests of other ranks. This rank answers them wherever it waits.
type Asked struct {
	count  *atomic.Uint64 // of all of them
	served uint64         // how many this rank has looked at
	Answer func()         // answers those that are open
}

// answer answers the requests that have come since it was called last.
func (c *Asked) answer(count uint64) {
	c.served = count
	c.Answer()
}

// Look calls f, unless the Comm has been closed and its memory may be another's: it reports whether
// it has. Goroutines that do not make the Comm's calls look at what ranks share by it alone.
func (c *Share) Look(f func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.gone {
		return false
	}
	f()
	return true
}

// Shut ends all looking: from here on no Look of this rank sees the region.
func (c *Share) Shut() {
	c.life.Lock()
	c.gone = true
	c.life.Unlock()
}

// Map is the memory that lies at the offset in at, so many bytes. If none does yet, and make is
// set, it makes that: of several ranks one does. It is nil where there is none.
func (c *Share) Map(at *atomic.Uint64, bytes int, make bool) ([]byte, error) {
	off := at.Load()
	if off == 0 {
		if !make {
			return nil, nil
		}
		var err error
		if off, err = c.Host.Alloc(bytes); err != nil {
			return nil, err
		}
		if !at.CompareAndSwap(0, off) {
			c.Host.Free(off, bytes)
			off = at.Load()
		}
	}
	return c.View(off, bytes)
}

// Make makes memory of so many bytes for the ranks of the host, and maps it, until the Comm closes.
func (c *Share) Make(bytes int) (off uint64, mem []byte, err error) {
	if off, err = c.Host.Alloc(bytes); err != nil {
		return 0, nil, err
	}
	if mem, err = c.View(off, bytes); err != nil {
		c.Host.Free(off, bytes)
	}
	return off, mem, err
}

// View maps so many bytes of the host's memory, until the Comm is closed.
func (c *Share) View(off uint64, bytes int) ([]byte, error) {
	mem, err := c.Host.View(off, bytes)
	if err == nil {
		c.views = append(c.views, shm.PlaceAt(off, bytes))
	}
	return mem, err
}

// Drop unmaps all that this rank has mapped.
func (c *Share) Drop() {
	for _, at := range c.views {
		c.Host.Drop(at)
	}
}

// agreeOnCrowding has the ranks of this host, more than two, agree on whether they outnumber their
// processors: what several of them do at once is done by turns then, and a Reduce goes another way.
// The first rank that comes here decides for all, since nothing that differs between ranks may
// choose a way.
func (c *Share) agreeOnCrowding() {
	if c.N <= 2 {
		return
	}
	w := c.Local.Crowding()
	if w.Load() == 0 {
		mine := region.RanksFit
		if c.Spins == SpinsCrowded {
			mine = region.RanksCrowd
		}
		w.CompareAndSwap(0, mine)
	}
	c.Local.Crowded = w.Load() == region.RanksCrowd
}
