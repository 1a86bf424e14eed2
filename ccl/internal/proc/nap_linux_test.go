package proc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNap(t *testing.T) {
	var n Napper
	assert.False(t, n.Nap(time.Microsecond), "not open")
	n.Open()
	for _, d := range []time.Duration{time.Nanosecond, 20 * time.Microsecond, 2 * time.Millisecond} {
		began := time.Now()
		require.True(t, n.Nap(d))
		assert.GreaterOrEqual(t, time.Since(began), d)
	}
	n.busy.Store(true)
	assert.False(t, n.Nap(time.Microsecond), "another naps")
	n.busy.Store(false)
	n.Close()
	assert.False(t, n.Nap(time.Microsecond), "closed")
}

// What 20 microseconds of sleep take.
func BenchmarkNap(b *testing.B) {
	const d = 20 * time.Microsecond
	b.Run("timerfd", func(b *testing.B) {
		var n Napper
		n.Open()
		defer n.Close()
		for b.Loop() {
			n.Nap(d)
		}
	})
	b.Run("time.Sleep", func(b *testing.B) {
		for b.Loop() {
			time.Sleep(d)
		}
	})
}
