package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A clock that says that it is late is set anew by a call that reads it, which wakes an idle monitor once.
func TestClock(t *testing.T) {
	var c Clock
	c.Start()
	at := c.Stamp(c.Born.Add(time.Second), false)
	assert.Equal(t, int64(time.Second), at)
	assert.Equal(t, at, c.Now())
	assert.False(t, c.IsActive(), "a clock that is right wakes nobody")

	c.Born = c.Born.Add(-time.Hour)
	c.Stamp(c.Born.Add(time.Second), true)
	c.GoIdle(int64(time.Second))
	assert.True(t, c.StayIdle())
	assert.GreaterOrEqual(t, c.Now(), int64(time.Hour))
	assert.True(t, c.IsActive())
	assert.Len(t, c.Woken(), 1)
	c.WakeMonitor()
	assert.Len(t, c.Woken(), 1, "it is being woken already")
	assert.Zero(t, c.now.Load()&1, "the next call finds it right")
	assert.False(t, c.StayIdle())
	assert.True(t, c.Look())
	assert.False(t, c.Look(), "once")
	c.WakeMonitor()
	assert.Len(t, c.Woken(), 1, "a monitor that is not idle is not woken")
}
