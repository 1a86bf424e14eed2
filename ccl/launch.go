package ccl

import (
	"slices"
	"sync"
	"time"
)

// launchesKept is how many launches of graphs the flight recorder keeps.
const launchesKept = 16

// launch is that of a graph with calls of a Comm, on a stream.
type launch struct {
	on    *deviceStream
	place uint64 // among the launches on that stream
	began time.Time
	call  Call
}

// launches are the last of a Comm. They have no place in the order of its calls: a program launches
// a graph without asking it.
type launches struct {
	mu   sync.Mutex
	n    uint64
	ring [launchesKept]launch
}

// add numbers l, and counts it as work of its stream.
func (ls *launches) add(l launch) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.n++
	l.call.Seq, l.place = ls.n, l.on.launched.Add(1)
	ls.ring[ls.n%launchesKept] = l
}

// end notes that those under way that are meant have ended so, and returns what OnCall is told of
// them, the oldest first.
func (ls *launches) end(s State, meant func(*launch) bool, comm string, now time.Duration) (told []Observation) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range launchesKept {
		l := &ls.ring[(ls.n+1+uint64(i))%launchesKept] // the oldest first
		if l.on != nil && l.call.State == Running && meant(l) {
			l.call.State, l.call.End = s, now
			told = append(told, Observation{Call: l.call, Comm: comm, Took: time.Since(l.began)})
		}
	}
	return told
}

// among is calls and launches by when they began, the last n of them.
func (ls *launches) among(calls []Call, n int) []Call {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.n == 0 {
		return calls
	}
	for i := range launchesKept {
		if l := &ls.ring[(ls.n+1+uint64(i))%launchesKept]; l.on != nil {
			calls = append(calls, l.call)
		}
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return int(a.Start - b.Start) })
	return calls[max(len(calls)-n, 0):]
}
