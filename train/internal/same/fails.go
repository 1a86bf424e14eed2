package same

import (
	"time"

	"github.com/goccl/goccl/ccl"
)

// grace is how long Fails waits.
const grace = time.Second

// Fails reports whether c fails, and gives it a moment for that: a rank that leaves a call may have
// heard of a loss on another Comm, and c then fails with the better reason.
func Fails(c *ccl.Comm) bool {
	select {
	case <-c.Done():
		return true
	case <-time.After(grace):
		return false
	}
}

// Tick is what Ends counts, up to patience. A process that is stopped has no ticks. Tests change it.
var Tick = time.Second

const patience = 30

// Ends reports whether done has something within half a minute, and takes that: what writes to a disk that answers
// nothing may never end.
func Ends[T any](done <-chan T) bool {
	ticks := time.NewTicker(Tick)
	defer ticks.Stop()
	for range patience {
		select {
		case <-done:
			return true
		case <-ticks.C:
		}
	}
	return false
}
