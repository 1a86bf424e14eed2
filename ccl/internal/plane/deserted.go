package plane

import (
	"sync"

	"github.com/goccl/goccl/ccl/internal/region"
)

// A rank that makes no call does not hear that the others close the Comm: what they have sent it may still receive, and a
// rank that works alone at the end is not to be disturbed. So that fails nothing. A rank that waits until it is needed, and
// for nothing else, asks for it here.

// deserted is whether all other ranks have closed the Comm.
type deserted struct {
	sync.Mutex               // a leaf
	ch         chan struct{} // closed once they have; nil: nobody asks
	over       bool
}

// Deserted returns a channel that is closed once all other ranks of c have closed it, or left the job in good order: the last
// of this host to close it wakes the monitor, and so does the news of another host. It stays open if the Comm fails first.
func Deserted(c *Member) <-chan struct{} {
	d := &c.Fate.deserted
	d.Lock()
	if d.ch == nil {
		d.ch = make(chan struct{})
	}
	d.Unlock()
	c.Site.Job.Time.Coarse.WakeMonitor()
	return d.ch
}

// checkDeserted is the monitor's look for it, where somebody has asked.
func (d *deserted) check(c *Member) {
	d.Lock()
	asked := d.ch != nil && !d.over
	d.Unlock()
	if !asked || !c.Share.isAlone() {
		return
	}
	for r := range c.Group.Size() {
		if node := c.Group.Topology().Node(r); node != c.Group.Topology().Node(c.Group.Rank()) && !c.Share.HasLeft(r) && !c.Site.KnownLeft(c.Group.World(r)) {
			return
		}
	}
	d.Lock()
	defer d.Unlock()
	d.over = true
	close(d.ch)
}

// isAlone reports whether all other ranks of this host have closed the Comm, which has not failed on them.
func (c *Share) isAlone() (alone bool) {
	c.Look(func() {
		alone = int(c.Local.Left().Load()) == c.N-1
		for r := range c.N {
			alone = alone && (r == c.Me || c.Local.State(r).Load() == region.StateClosed)
		}
	})
	return alone
}
