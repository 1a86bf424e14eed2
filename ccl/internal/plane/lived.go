package plane

import (
	"sync"
	"time"
)

// lived is the time that this process has lived through: it stands still while the process is stopped. Silence is
// counted in it. Otherwise a process that goes on after a pause would take the pause for the silence of the others,
// although they were paused with it: by a signal to all, with their container, or with the virtual machine.
//
// The monitor moves it on, by at most lapMax more at a time than it meant to sleep: a gap of its own is no time in which it
// could have heard.
type lived struct {
	mu    sync.Mutex
	total time.Duration
	at    time.Time     // when it was moved on last
	slow  time.Duration // after which the monitor moves it on next, where that is more than a tick; else 0
}

// lapMax is far longer than the monitor sleeps, and short beside every limit that is counted in lived time.
const lapMax = 100 * time.Millisecond

// lap moves the clock on.
func (l *lived) lap(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += l.gap(now)
	l.at, l.slow = now, 0
}

// sleepsFor says that the next lap comes after d. Until then now goes on by itself.
func (l *lived) sleepsFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = d
}

// gap is what has been lived through since the last lap. l.mu is held.
func (l *lived) gap(now time.Time) time.Duration {
	if l.at.IsZero() {
		return 0
	}
	return min(max(now.Sub(l.at), 0), l.slow+lapMax)
}

// Now is the time lived so far.
func (l *lived) Now() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow > 0 {
		return l.total + l.gap(time.Now())
	}
	return l.total
}

// deadline returns a function that reports whether this process has lived for d since, or is about to leave its job, after
// which its time stands still. A wait for what other processes are to say ends so: what they said during a pause is read
// before it is over.
func (j *job) deadline(d time.Duration) (over func() bool) {
	until := j.Lived.Now() + d
	return func() bool {
		select {
		case <-j.StopCh:
			return true
		default:
			return j.Lived.Now() >= until
		}
	}
}
