package lived

import (
	"sync"
	"time"
)

// Clock is the time that this process has lived through: it stands still while the process is stopped. Silence is
// counted in it. Otherwise a process that goes on after a pause would take the pause for the silence of the others,
// although they were paused with it: by a signal to all, with their container, or with the virtual machine.
//
// A job's monitor moves the job's on, by at most LapMax more at a time than it meant to sleep: a
// gap of its own is no time in which it could have heard.
type Clock struct {
	mu    sync.Mutex // guards what follows; nothing is taken under it
	total time.Duration
	brief time.Duration // what of total counts for short waits
	at    time.Time     // when it was moved on last
	slow  time.Duration // after which the monitor moves it on next, where that is more than a tick; else 0
	long  time.Duration // of which gap Stood tells; 0: of none
	stood bool          // there has been one,
	again time.Duration // and the last was over at that time lived
	gaps  [gapsKept]gap // the last that were longer than meant
	n     int           // of all of those
}

// gap is one between two laps.
type gap struct {
	end    time.Time
	missed time.Duration // what of it was not lived through
}

const gapsKept = 64

// LapMax is far longer than the monitor sleeps, and short beside every limit that is counted in lived time.
const LapMax = 100 * time.Millisecond

// briefMax is the same for waits that are not long beside LapMax: on a machine so loaded that the
// monitor comes late, the processes that are to say something come late as well.
const briefMax = 10 * time.Millisecond

// Lap moves the clock on.
func (l *Clock) Lap(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	long, missed := l.isLong(now), l.missed(now)
	l.total, l.brief = l.total+l.gap(now), l.brief+min(l.gap(now), l.slow+briefMax)
	if long {
		l.stood, l.again = true, l.total
	}
	if missed > 0 {
		l.gaps[l.n%gapsKept] = gap{now, missed}
		l.n++
	}
	l.at, l.slow = now, 0
}

// Notice has Stood tell of pauses that are longer than that.
func (l *Clock) Notice(long time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.long = long
}

// Stood reports whether the process has stood still for as long as Notice says, and when it went
// on, in time lived: now, if the monitor has not looked at the clock since.
func (l *Clock) Stood() (again time.Duration, ever bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.isLong(now) {
		return l.total + l.gap(now), true
	}
	return l.again, l.stood
}

// MissedSince is how much of the time since then this process has not lived through, as far as it remembers.
func (l *Clock) MissedSince(then time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	missed := l.missed(time.Now())
	for _, g := range l.gaps[:min(l.n, gapsKept)] {
		if g.end.After(then) {
			missed += min(g.missed, g.end.Sub(then))
		}
	}
	return missed
}

// missed is what of the time since the last lap has not been lived through. l.mu is held.
func (l *Clock) missed(now time.Time) time.Duration {
	if l.at.IsZero() {
		return 0
	}
	return max(now.Sub(l.at)-l.gap(now), 0)
}

// isLong reports whether the gap since the last lap is one to notice. Where the clock that counts
// on is one that stands still while the machine sleeps, that on the wall tells. l.mu is held.
func (l *Clock) isLong(now time.Time) bool {
	if l.long <= 0 || l.at.IsZero() {
		return false
	}
	return max(now.Sub(l.at), now.Round(0).Sub(l.at.Round(0))) > l.slow+l.long
}

// SleepsFor says that the next lap comes after d. Until then now goes on by itself.
func (l *Clock) SleepsFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = d
}

// gap is what has been lived through since the last lap. l.mu is held.
func (l *Clock) gap(now time.Time) time.Duration {
	if l.at.IsZero() {
		return 0
	}
	return min(max(now.Sub(l.at), 0), l.slow+LapMax)
}

// Now is the time lived so far.
func (l *Clock) Now() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow > 0 {
		return l.total + l.gap(time.Now())
	}
	return l.total
}

// Exact is the time lived up to this moment, for limits that are not to end early: Now may lag by
// as much as the monitor does.
func (l *Clock) Exact() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total + l.gap(time.Now())
}

// Brief is the time lived so far in which this process could hear what others had to say, for waits
// of less than a second. It lags behind Now on a loaded machine.
func (l *Clock) Brief() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow > 0 {
		return l.brief + min(l.gap(time.Now()), l.slow+briefMax)
	}
	return l.brief
}
