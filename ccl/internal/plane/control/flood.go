package control

import (
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// Flood is a host's part in the floods of its job. Events and statuses reach all hosts over
// connections that make circles: a tree and a ring between hosts, and the board and the log of
// each. So each comes to a host several times, and is passed on once.
//
// The process where a frame begins gives it a number. A host passes on what has a number of that
// origin that it has not heard. It remembers that for as long as the job lasts, as runs of numbers.
// Where there are too many runs it takes what lies between the oldest of them for heard, so that a
// frame may be lost, but none goes round. A memory of the last few frames would not do: where more
// than that are under way at once, each displaces another, which then is new again, for ever.
type Flood struct {
	mu    sync.Mutex // guards what follows; nothing is taken under it
	begun map[source]uint64
	heard map[source][]run
	taken map[mark][]*Conn // events that came and have no place yet, and from where
	said  briefs
}

// source is where frames come from: the process of a rank of the world. way is what they are. A
// frame that changes, as an event that is decided, goes another way under the number that it has.
type source struct {
	origin int32
	way    way
}

type way uint8

// The stages of an event are the first ways.
const (
	ofStatuses way = way(event.Decided) + 1 + iota
	ofBriefs
)

// mark is one frame.
type mark struct {
	source
	number uint64
}

// run is those numbers, first and last among them.
type run struct{ first, last uint64 }

// runsMost is how many runs are kept of a source. What is still to come counts as heard where so
// many later frames, with gaps between them, have overtaken it.
const runsMost = 64

// NumberEvent gives e, which begins in this process, its number.
func (f *Flood) NumberEvent(e *event.Event) { e.Number = f.next(source{origin: e.Origin}) }

// NumberStatus gives s, which begins in this process, its number.
func (f *Flood) NumberStatus(s *status.Status) { s.Number = f.next(sourceOf(s)) }

func sourceOf(s *status.Status) source {
	if s.Brief {
		return source{s.World, ofBriefs}
	}
	return source{s.World, ofStatuses}
}

func (f *Flood) next(from source) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun == nil {
		f.begun = map[source]uint64{}
	}
	f.begun[from]++
	return f.begun[from]
}

// Passage is a frame that a host has for the first time. Nothing else can be sent to the hosts
// beside it, unless they are new: see Conn.Greet.
type Passage struct {
	event  *event.Event
	status *status.Status
	from   *Conn   // where it came from, nil for this host
	has    []*Conn // where else
}

// Receive takes in e, which has come from a neighbor, and reports whether it comes for the first
// time. Then it is to be given its place among what this host believes, where Event passes it on.
func (f *Flood) Receive(e *event.Event, from *Conn) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := mark{source{e.Origin, way(e.Stage)}, e.Number}
	if f.has(m) {
		return false
	}
	before := f.taken[m]
	if f.taken == nil {
		f.taken = map[mark][]*Conn{}
	}
	f.taken[m] = append(before, from)
	return len(before) == 0
}

// Event has e pass, and reports whether it does for the first time. A host calls it where it
// believes e, in the order in which it does: so all others hear in its order of what one of them
// decides.
func (f *Flood) Event(e *event.Event, from *Conn) (on Passage, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := mark{source{e.Origin, way(e.Stage)}, e.Number}
	on = Passage{event: e, from: from, has: f.taken[m]}
	delete(f.taken, m)
	return on, f.first(m)
}

// Status takes in s, and reports whether it comes for the first time. A brief whose place in the
// order of calls another host has told of lately says nothing new either.
func (f *Flood) Status(s *status.Status, from *Conn) (on Passage, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Brief && inject.Wrong("control.storm") { // a memory of the last four
		f.said.last = f.said.last[max(0, len(f.said.last)-3):]
		return Passage{status: s, from: from}, !f.said.repeats(s)
	}
	return Passage{status: s, from: from}, f.first(mark{sourceOf(s), s.Number}) && !(s.Brief && f.said.repeats(s))
}

// To sends a frame on to those of the neighbors from which it did not come.
func (p Passage) To(all []*Conn) { p.toTree(all, -1) }

// ToTree sends a frame on as To does, to those of the neighbors that are beside host in the tree.
func (p Passage) ToTree(all []*Conn, host int) { p.toTree(all, host) }

func (p Passage) toTree(all []*Conn, host int) {
	for _, c := range all {
		switch {
		case c == p.from, slices.Contains(p.has, c), host >= 0 && !c.InTree(host), p.from != nil &&
			inject.Wrong("control.flood"):
		case p.event != nil:
			c.sendEvent(p.event)
		case p.status != nil:
			c.sendStatus(p.status)
		}
	}
}

// at is the run of its source in which m lies, or before which it is to be inserted. f.mu is held.
func (f *Flood) at(m mark) (i int, has bool) {
	runs := f.heard[m.source]
	i = len(runs)
	for i > 0 && runs[i-1].first > m.number {
		i--
	}
	return i, i > 0 && m.number <= runs[i-1].last
}

// has reports whether m has passed. f.mu is held.
func (f *Flood) has(m mark) bool {
	_, has := f.at(m)
	return has
}

// first notes that m passes, and reports whether it does for the first time. f.mu is held.
func (f *Flood) first(m mark) bool {
	i, has := f.at(m)
	if has {
		return false
	}
	runs := slices.Insert(f.heard[m.source], i, run{m.number, m.number})
	runs = joined(joined(runs, i), i-1)
	if len(runs) > runsMost {
		runs[1].first = runs[0].first
		runs = slices.Delete(runs, 0, 1)
	}
	if f.heard == nil {
		f.heard = map[source][]run{}
	}
	f.heard[m.source] = runs
	return true
}

// joined makes one run of the i-th and the next, if there are two between which no number lies.
func joined(runs []run, i int) []run {
	if i < 0 || i+1 >= len(runs) || runs[i].last+1 != runs[i+1].first {
		return runs
	}
	runs[i].last = runs[i+1].last
	return slices.Delete(runs, i+1, i+2)
}

// briefs are the places in the order of calls that were told last. Many hosts tell of the same
// place at once, and one is enough. What is forgotten here is told once more by each host at most,
// since its number tells.
type briefs struct {
	last []place
	next int
}

type place struct {
	comm, calls uint64
	hash        uint32
}

const keptBriefs = 256

// repeats reports whether the place of s was told lately, and notes it.
func (b *briefs) repeats(s *status.Status) bool {
	at := place{s.Comm, s.Calls, s.Hash}
	if slices.Contains(b.last, at) {
		return true
	}
	if len(b.last) < keptBriefs {
		b.last = append(b.last, at)
	} else {
		b.last[b.next] = at
		b.next = (b.next + 1) % keptBriefs
	}
	return false
}
