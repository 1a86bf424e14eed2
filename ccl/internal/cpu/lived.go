package cpu

import (
	"sync/atomic"
	"time"
)

// lived is the time that this process has lived through: it stands still while the process is stopped. Silence is
// counted in it. Otherwise a process that goes on after a pause would take the pause for the silence of the others,
// although they were paused with it: by a signal to all, with their container, or with the virtual machine.
//
// The monitor moves it on, by at most lapMax at a time: a gap of its own is no time in which it could have heard.
type lived struct {
	total atomic.Int64 // in nanoseconds
	at    time.Time    // when it was moved on last; the monitor's
}

// lapMax is far longer than the monitor sleeps, and short beside every limit that is counted in lived time.
const lapMax = 100 * time.Millisecond

// lap moves the clock on.
func (l *lived) lap(now time.Time) {
	if !l.at.IsZero() {
		l.total.Add(int64(min(max(now.Sub(l.at), 0), lapMax)))
	}
	l.at = now
}

// now is the time lived so far.
func (l *lived) now() time.Duration { return time.Duration(l.total.Load()) }

// outlives returns a function that reports whether this process has lived for d since, or is about to leave its job, after
// which its time stands still. A wait for what other processes are to say ends so: what they said during a pause is read
// before it is over.
func (j *job) outlives(d time.Duration) (over func() bool) {
	until := j.lived.now() + d
	return func() bool {
		select {
		case <-j.stopCh:
			return true
		default:
			return j.lived.now() >= until
		}
	}
}
