package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLived(t *testing.T) {
	var l lived
	at := time.Now()
	lap := func(after time.Duration) time.Duration {
		at = at.Add(after)
		l.lap(at)
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
	var l lived
	at := time.Now()
	l.lap(at)
	l.sleepsFor(long)
	l.lap(at.Add(long))
	assert.Equal(t, long, l.Now())
	l.sleepsFor(long)
	l.lap(at.Add(time.Hour))
	assert.Equal(t, 2*long+lapMax, l.Now())
	l.lap(at.Add(2 * time.Hour))
	assert.Equal(t, 2*long+2*lapMax, l.Now(), "the sleep after that was a tick")
}

// A wait for others counts the time that was lived through, not a pause, and ends with the job.
func TestOutlives(t *testing.T) {
	j := &job{StopCh: make(chan struct{})}
	at := time.Now()
	j.Lived.lap(at)
	over := j.deadline(3 * lapMax)
	assert.False(t, over())
	j.Lived.lap(at.Add(time.Hour)) // a pause
	assert.False(t, over())
	for i := range 2 {
		j.Lived.lap(at.Add(time.Hour + time.Duration(i+1)*lapMax))
	}
	assert.True(t, over())
	over = j.deadline(time.Hour)
	assert.False(t, over())
	close(j.StopCh)
	assert.True(t, over())
}
