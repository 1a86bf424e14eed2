package cpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNap(t *testing.T) {
	var n napper
	assert.False(t, n.nap(time.Microsecond), "not open")
	n.open()
	for _, d := range []time.Duration{time.Nanosecond, 20 * time.Microsecond, 2 * time.Millisecond} {
		began := time.Now()
		require.True(t, n.nap(d))
		assert.GreaterOrEqual(t, time.Since(began), d)
	}
	n.busy.Store(true)
	assert.False(t, n.nap(time.Microsecond), "another naps")
	n.busy.Store(false)
	n.close()
	assert.False(t, n.nap(time.Microsecond), "closed")
}

// What 20 microseconds of sleep take.
func BenchmarkNap(b *testing.B) {
	const d = 20 * time.Microsecond
	b.Run("timerfd", func(b *testing.B) {
		var n napper
		n.open()
		defer n.close()
		for b.Loop() {
			n.nap(d)
		}
	})
	b.Run("time.Sleep", func(b *testing.B) {
		for b.Loop() {
			time.Sleep(d)
		}
	})
}
