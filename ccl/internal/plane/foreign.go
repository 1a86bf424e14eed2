package plane

import (
	"math"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Inside notes that c's rank is in a call of another engine that may wait there for other ranks, or
// is no more. The monitor looks at it as at a call of Begin.
func (c *Member) Inside(yes bool) {
	if !yes {
		c.Standing.Elsewhere.End()
		return
	}
	c.Current.began = c.Site.Job.Clock()
	c.Standing.Elsewhere.Begin(c.Current.began)
}

// Stands notes since when (see Now) a device has not moved in what was handed to it; 0: it moves. To the others this
// rank waits in its last collective then.
func (c *Elsewhere) Stands(since int64) {
	if since == 0 {
		c.stands.Store(0)
		return
	}
	c.stands.Store(ForeignCall | uint64(max(since, 0)))
}

// watchForeign is the monitor's look at a foreign call, which cannot look for itself.
func (c *Member) watchForeign(now int64) {
	began := c.Standing.Elsewhere.foreignSince()
	if began == 0 || c.Fate.cause.Load() != nil {
		return
	}
	var f *call.Fault
	over := false
	c.Share.Look(func() {
		place, _ := c.Share.Local.Collective(c.Share.Me)
		t, since := int64(c.Group.Timeout()), int64(began&math.MaxInt64)
		if over = t > 0 && now-since > t && c.Standing.IsOverdue(since, now); over {
			return
		}
		if f = c.Share.OtherCallAt(place); f == nil {
			f = c.Share.closedLate()
		}
	})
	if over && c.Standing.Elsewhere.gaveUp.CompareAndSwap(false, true) {
		go FailElsewhere(c, notDone(c)) // which asks others
	}
	if f != nil {
		go c.Fail(f) // whose part in the job may be the last: the job ends when the monitor has
	}
}

// ForeignCall marks the start of a foreign call: the monitor looks at those alone.
const ForeignCall = 1 << 63
