// Package backoff is how a loop that polls waits between two looks.
//
// Four kinds of waits are not here. A rank that waits for another one sleeps until it is rung
// (package plane). Loops that dial wait for their context as well, with jitter (package boot).
// Package native sleeps in proportion to the time that a call has taken, which is sooner done than
// doubling allows. What happens once, at the end of a Comm or a job, polls at an even pace.
package backoff

import "time"

// Sleep sleeps for First, and then twice as long each time, up to Most.
type Sleep struct {
	First, Most time.Duration
	last        time.Duration
}

// Next sleeps.
func (s *Sleep) Next() {
	s.last = max(s.First, min(2*s.last, s.Most))
	time.Sleep(s.last)
}

// Reset makes First the next sleep.
func (s *Sleep) Reset() { s.last = 0 }
