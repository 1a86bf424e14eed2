package cpu

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
		return l.now()
	}
	assert.Equal(t, time.Duration(0), lap(0))
	assert.Equal(t, tick, lap(tick))
	assert.Equal(t, tick+lapMax, lap(lapMax))
	assert.Equal(t, tick+2*lapMax, lap(time.Hour), "a pause")
	assert.Equal(t, tick+2*lapMax, lap(-time.Minute), "a clock that is set back")
	assert.Equal(t, 2*tick+2*lapMax, lap(tick))
}
