package plane

import (
	"sync/atomic"
	"time"
)

// Clock is the coarse time since the job began, which the monitor stamps at each of its looks, so that calls need not read
// a clock. While the monitor is idle the time is late, and says so by its lowest bit: a call that sees the bit reads the
// real clock instead, and wakes the monitor.
type Clock struct {
	Born   time.Time
	now    atomic.Int64 // nanoseconds since Born; odd: late
	active atomic.Bool  // somebody has woken the monitor since its last look
	idle   atomic.Bool  // the monitor is idle, or about to be
	wake   chan struct{}
}

// Start begins at 0, now.
func (c *Clock) Start() { c.Born, c.wake = time.Now(), make(chan struct{}, 1) }

// Now is the coarse time since the job began, in nanoseconds; an even number.
func (c *Clock) Now() int64 {
	if t := c.now.Load(); t&1 == 0 {
		return t
	}
	return c.refresh()
}

// refresh sets the clock, which is late, and wakes the monitor.
func (c *Clock) refresh() int64 {
	c.WakeMonitor()
	return c.Stamp(time.Now(), false)
}

// Stamp sets the clock, and returns the time it shows. If late, calls are to read the real clock, and wake the monitor.
func (c *Clock) Stamp(now time.Time, late bool) int64 {
	t := int64(now.Sub(c.Born)) &^ 1
	if late {
		c.now.Store(t | 1)
	} else {
		c.now.Store(t)
	}
	return t
}

// WakeMonitor has the monitor look around soon, and for a while from then on.
func (c *Clock) WakeMonitor() {
	if !c.active.Load() {
		c.active.Store(true)
	}
	if c.idle.Load() {
		select {
		case c.wake <- struct{}{}:
		default: // it is being woken already
		}
	}
}

// Woken is what the idle monitor waits for.
func (c *Clock) Woken() <-chan struct{} { return c.wake }

// Look ends being idle, and reports whether somebody has woken the monitor since its last look.
func (c *Clock) Look() bool {
	c.idle.Store(false)
	return c.active.Swap(false)
}

// GoIdle says that the monitor is about to be idle, at that coarse time. From then on the clock is late.
func (c *Clock) GoIdle(at int64) {
	c.idle.Store(true)
	c.now.Store(at | 1)
}

// StayIdle reports whether nobody has woken the monitor since; else it is not idle.
func (c *Clock) StayIdle() bool {
	if c.active.Load() {
		c.idle.Store(false)
		return false
	}
	return true
}

// IsActive reports whether somebody has woken the monitor since its last look.
func (c *Clock) IsActive() bool { return c.active.Load() }
