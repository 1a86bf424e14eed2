package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/plane/watch"
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
	c.Sleep(int64(time.Second), watch.Idles)
	assert.True(t, c.Sleeps())
	assert.GreaterOrEqual(t, c.Now(), int64(time.Hour))
	assert.True(t, c.IsActive())
	assert.Len(t, c.Woken(), 1)
	c.WakeMonitor()
	assert.Len(t, c.Woken(), 1, "it is being woken already")
	assert.Zero(t, c.now.Load()&1, "the next call finds it right")
	assert.False(t, c.Sleeps())
	assert.True(t, c.Look())
	assert.False(t, c.Look(), "once")
	<-c.Woken()
	c.WakeMonitor()
	assert.Empty(t, c.Woken(), "a monitor that naps is not woken")
	c.Sleep(at, watch.Dozes)
	assert.False(t, c.Sleeps(), "it was woken before it dozed")
	assert.True(t, c.Look())
	c.KeepAwake()
	c.Sleep(at, watch.Dozes)
	assert.True(t, c.Sleeps(), "that can wait")
	assert.NotZero(t, c.now.Load()&1, "the clock is late while the monitor dozes")
	c.Now()
	assert.NotZero(t, c.now.Load()&1, "for the next call, too")
	c.KeepAwake()
	assert.Empty(t, c.Woken())
	c.WakeMonitor()
	assert.Len(t, c.Woken(), 1)
}
