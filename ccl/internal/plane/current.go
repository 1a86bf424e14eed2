package plane

import "github.com/goccl/goccl/ccl/internal/call"

// Current is the call under way. It is the goroutine's that makes the calls.
type Current struct {
	began    int64      // coarse
	running  *call.Call // nil once it has slept, and while there is none
	lockstep bool       // it is one of rounds among all ranks of this host
}

// Begin notes that k begins now. k is nil where none is to be noted as asleep.
func (c *Current) Begin(k *call.Call, now int64) { c.began, c.running, c.lockstep = now, k, false }

// Since is when it began.
func (c *Current) Since() int64 { return c.began }

// InRounds notes whether it is one of rounds among all ranks of this host: then those that have not posted are late.
func (c *Current) InRounds(yes bool) { c.lockstep = yes }

// Slept reports whether it has slept.
func (c *Current) Slept() bool { return c.running == nil }

// EndCall ends the call under way, and wakes the ranks that wait for what it has posted.
func (c *Member) EndCall() {
	if c.Current.running == nil {
		c.EndSleep()
	} else if c.Standing.Bell.Set {
		c.Unpark()
	}
	c.Current.running = nil
	c.Wake()
}
