package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
