package proc

import "time"

// Threads are those of a process, by number, as the kernel's scheduler sees them at some moment.
type Threads map[int]Thread

// Thread has run on a processor for Ran, and waited for one for Waited, which the kernel counts
// when it gets one. Ready: it runs or waits, and does not sleep, nor is it stopped.
type Thread struct {
	Ran, Waited time.Duration
	Ready       bool
}

// Starved is how long the process was kept from running since the look before, d ago: as long as
// that thread that waited longest for a processor. A wait that has not ended is not counted by the
// kernel. So a thread that is ready at both looks counts as one that waited whenever it did not
// run.
func (t Threads) Starved(before Threads, d time.Duration) time.Duration {
	longest := time.Duration(0)
	for id, now := range t {
		then, ok := before[id]
		switch {
		case !ok || now.Ran < then.Ran: // a new one
		case now.Ready && then.Ready:
			longest = max(longest, d-(now.Ran-then.Ran))
		default:
			longest = max(longest, now.Waited-then.Waited)
		}
	}
	return min(longest, d)
}
