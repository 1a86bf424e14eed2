package proc

import "time"

// Threads are those of a process, by number, as the kernel's scheduler sees them at some moment.
type Threads map[int]Thread

// Thread has run on a processor for Ran, and waited for one for Waited, which the kernel counts when it gets one. Ready: it
// runs or waits, and does not sleep, nor is it stopped.
type Thread struct {
	Ran, Waited time.Duration
	Ready       bool
}

// Starved is how long the process was kept from running since the look before, d ago: as long as that thread that waited
// longest for a processor.
func (t Threads) Starved(before Threads, d time.Duration) time.Duration {
	longest := time.Duration(0)
	for id, now := range t {
		then, ok := before[id]
		switch {
		case !ok || now.Ran < then.Ran: // a new one
		case now.Ready && then.Ready && now.Ran == then.Ran: // all the time, which is not counted yet
			return d
		default:
			longest = max(longest, now.Waited-then.Waited)
		}
	}
	return min(longest, d)
}
