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
