package cpu

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/backoff"
	"github.com/goccl/goccl/internal/lived"
)

// Together reports whether all ranks of this host close c now, which it waits for at most so long:
// the answer is the same for all that ask, and each asks once. The first that has waited in vain
// decides for all of them. It comes before Close.
func (c *Comm) Together(limit time.Duration) bool {
	w, over := c.rank.Share.Local.Leaving(), lived.For(limit)
	w.Add(1)
	wait := backoff.Sleep{First: 20 * time.Microsecond, Most: time.Millisecond}
	for {
		switch v := w.Load(); {
		case v&region.Apart != 0:
			return false
		case int(v) == c.rank.Share.N:
			return true
		case c.rank.Fate.Cause() != nil, over():
			if w.CompareAndSwap(v, v|region.Apart) {
				return false
			}
		default:
			wait.Next()
		}
	}
}
