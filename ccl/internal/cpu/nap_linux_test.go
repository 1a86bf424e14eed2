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
