package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLived(t *testing.T) {
	const tick = 5 * time.Millisecond
	var l Lived
	at := time.Now()
	lap := func(after time.Duration) time.Duration {
		at = at.Add(after)
		l.Lap(at)
		return l.Now()
	}
	assert.Equal(t, time.Duration(0), lap(0))
	assert.Equal(t, tick, lap(tick))
	assert.Equal(t, tick+lapMax, lap(lapMax))
	assert.Equal(t, tick+2*lapMax, lap(time.Hour), "a pause")
	assert.Equal(t, tick+2*lapMax, lap(-time.Minute), "a clock that is set back")
	assert.Equal(t, 2*tick+2*lapMax, lap(tick))
}

// Where the monitor sleeps for longer than a tick, all of that is lived through, and nothing of a pause in it.
func TestLivedInLongTicks(t *testing.T) {
	const long = 3 * lapMax
	var l Lived
	at := time.Now()
	l.Lap(at)
	l.SleepsFor(long)
	l.Lap(at.Add(long))
	assert.Equal(t, long, l.Now())
	l.SleepsFor(long)
	l.Lap(at.Add(time.Hour))
	assert.Equal(t, 2*long+lapMax, l.Now())
	l.Lap(at.Add(2 * time.Hour))
	assert.Equal(t, 2*long+2*lapMax, l.Now(), "the sleep after that was a tick")
}
