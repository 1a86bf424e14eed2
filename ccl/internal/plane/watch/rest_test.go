package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Eight sleeps of an idle monitor fit into the silence that makes a process lost.
func TestIdleTick(t *testing.T) {
	for peer, want := range map[time.Duration]time.Duration{0: time.Second, LeastSilence: BeatEvery, 2 * time.Second: BeatEvery,
		5 * time.Second: 625 * time.Millisecond, time.Minute: time.Second} {
		assert.Equal(t, want, IdleTick(peer), "%v", peer)
	}
}
