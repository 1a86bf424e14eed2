package plane

import (
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/watch"
)

// Clock is the coarse time since the job began, which the monitor stamps at each of its looks, so
// that calls need not read a clock. While the monitor is idle the time is late, and says so by its
// lowest bit: a call that sees the bit reads the real clock instead, and wakes the monitor.
type Clock struct {
	Born   time.Time
	now    atomic.Int64  // nanoseconds since Born; odd: late
	active atomic.Bool   // somebody has woken the monitor since its last look, or has something for it
	urgent atomic.Bool   // it has been woken
	sleep  atomic.Uint32 // how the monitor sleeps
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

// Exact is the time since the job began, as no look of the monitor has rounded it.
func (c *Clock) Exact() time.Duration { return time.Since(c.Born) }

// refresh sets the clock, which is late, and wakes the monitor. It stays late while the monitor dozes.
func (c *Clock) refresh() int64 {
	c.KeepAwake()
	return c.Stamp(time.Now(), c.sleep.Load() == watch.Dozes)
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
	c.active.Store(true)
	c.urgent.Store(true)
	if c.sleep.Load() != watch.Naps {
		c.ring()
	}
}

// KeepAwake is WakeMonitor for what can wait until a monitor that dozes looks around.
func (c *Clock) KeepAwake() {
	if !c.active.Load() {
		c.active.Store(true)
	}
	if c.sleep.Load() == watch.Idles {
		c.ring()
	}
}

func (c *Clock) ring() {
	select {
	case c.wake <- struct{}{}:
	default: // it is being woken already
	}
}

// Woken is what the monitor waits for while it dozes or is idle.
func (c *Clock) Woken() <-chan struct{} { return c.wake }

// Look ends the monitor's sleep, and reports whether somebody has woken it since its last look, or
// has something for it.
func (c *Clock) Look() bool {
	c.sleep.Store(watch.Naps)
	c.urgent.Store(false)
	return c.active.Swap(false)
}

// Sleep says how the monitor is about to sleep, at that coarse time. Meanwhile the clock is late.
func (c *Clock) Sleep(at int64, how uint32) {
	c.sleep.Store(how)
	c.now.Store(at | 1)
}

// Sleeps reports whether nobody has woken the monitor since; else it naps.
func (c *Clock) Sleeps() bool {
	if c.urgent.Load() || c.sleep.Load() == watch.Idles && c.active.Load() {
		c.sleep.Store(watch.Naps)
		return false
	}
	return true
}

// IsActive reports whether somebody has woken the monitor since its last look.
func (c *Clock) IsActive() bool { return c.active.Load() }
