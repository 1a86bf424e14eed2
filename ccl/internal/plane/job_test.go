package plane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/lived"
)

// A wait for others counts the time that was lived through, not a pause, and ends with the job.
func TestOutlives(t *testing.T) {
	j := &Job{Life: lifetime{StopCh: make(chan struct{})}}
	const step = 100 * time.Millisecond // the most that counts of a gap
	at := time.Now()
	j.Time.Lived.Lap(at)
	over := j.deadline(3 * step)
	assert.False(t, over())
	j.Time.Lived.Lap(at.Add(time.Hour)) // a pause
	assert.False(t, over())
	for i := range 2 {
		j.Time.Lived.Lap(at.Add(time.Hour + time.Duration(i+1)*step))
	}
	assert.True(t, over())
	over = j.deadline(time.Hour)
	assert.False(t, over())
	close(j.Life.StopCh)
	assert.True(t, over())
}

// A wait ends when what it waits for has come, or once so much time was lived through: while the process stands still, or leaves its
// job, none is.
func TestAwaitLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, done, never := &Job{}, make(chan struct{}), make(chan struct{})
		j.Time.Lived.Lap(time.Now())
		began := time.Now()
		go func() {
			time.Sleep(time.Hour) // in which nobody moves the clock on
			for range 10 {
				j.Time.Lived.Lap(time.Now()) // the first time it counts lived.LapMax
				time.Sleep(10 * tick)
			}
			close(done)
		}()
		AwaitLived(j, lived.LapMax+20*tick, never)
		assert.Equal(t, time.Hour+20*tick, time.Since(began).Round(10*tick))
		AwaitLived(j, time.Hour, done)
		assert.Less(t, time.Since(began), time.Hour+time.Second)
		AwaitLived(j, time.Hour, done)
		assert.Less(t, time.Since(began), time.Hour+time.Second)
	})
}
