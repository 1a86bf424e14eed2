package mail

import (
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// Box is where one rank's messages wait for receives, and its receives for messages.
type Box struct {
	mu     sync.Mutex
	slots  map[Path]*slot
	closed map[uint64]uint8 // Comms that the rank has closed, or that have failed: what senders are told
	list   []uint64         // the same, oldest first from next on
	next   int
}

// slot is what waits on one path: at most one of the two lists has entries that match.
type slot struct {
	posted  []*Receiving
	arrived []*arrival
}

// arrival is a message that has come, at least its head.
type arrival struct {
	from   int
	seq    uint64
	typ    op.Type
	count  uint64
	body   []byte                                      // the payload, if it has come along
	fetch  func(r *Receiving)                          // brings the payload, ends r and tells the sender
	answer func(code uint8, typ op.Type, count uint64) // tells the sender
}

// refuse tells the sender that the Comm is closed here. Where it has failed the sender learns that by itself, with the reason.
func (a *arrival) refuse(code uint8) {
	if code == takenClosed {
		a.answer(code, 0, 0)
	}
}

func newBox() *Box { return &Box{slots: map[Path]*slot{}, closed: map[uint64]uint8{}} }

// at is the slot of p. b.mu is held.
func (b *Box) at(p Path) *slot {
	s := b.slots[p]
	if s == nil {
		s = &slot{}
		b.slots[p] = s
	}
	return s
}

// tidy forgets the slot of p where nothing waits. b.mu is held.
func (b *Box) tidy(p Path, s *slot) {
	if len(s.posted) == 0 && len(s.arrived) == 0 {
		delete(b.slots, p)
	}
}

// take removes the first of a list for which is holds, and returns it.
func take[T any](list *[]T, is func(T) bool) (x T, found bool) {
	i := slices.IndexFunc(*list, is)
	if i < 0 {
		return x, false
	}
	x = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x, true
}

// post gives r the first message that matches, or has it wait for that. One that has ended by now does
// not wait: who ended it has looked for it here, or will.
func (b *Box) post(r *Receiving, first bool) {
	b.mu.Lock()
	s := b.at(r.path)
	var a *arrival
	here := false
	if !r.isOver() {
		a, here = take(&s.arrived, func(a *arrival) bool { return r.from == Any || r.from == a.from })
		switch {
		case here:
		case first:
			s.posted = slices.Insert(s.posted, 0, r)
		default:
			s.posted = append(s.posted, r)
		}
	}
	b.tidy(r.path, s)
	b.mu.Unlock()
	if here {
		match(r, a)
	}
}

// deliver gives a to the first receive that it matches, or keeps it.
func (b *Box) deliver(p Path, a *arrival) {
	b.mu.Lock()
	if code := b.closed[p.Comm]; code != 0 {
		b.mu.Unlock()
		a.refuse(code)
		return
	}
	s := b.at(p)
	r, waits := take(&s.posted, func(r *Receiving) bool { return (r.from == Any || r.from == a.from) && !r.isOver() })
	if !waits {
		s.arrived = append(s.arrived, a)
	}
	b.tidy(p, s)
	b.mu.Unlock()
	if waits {
		match(r, a)
	}
}

// match moves a into r. Here and elsewhere r ends before the sender is told: that one may then close the Comm, which ends what
// still waits for it.
func match(r *Receiving, a *arrival) {
	r.mu.Lock()
	r.source = a.from
	r.mu.Unlock()
	switch {
	case r.typ != a.typ || r.count != a.count:
		a.answer(takenNot, r.typ, r.count)
		r.end(differs("it has sent", a.from, a.typ, a.count, "here", r.typ, r.count))
	case a.body != nil || a.count == 0:
		if r.copyIn(a.body) {
			r.end(nil)
			a.answer(takenWell, 0, 0)
		} else {
			a.answer(takenFailed, 0, 0)
		}
	default:
		a.fetch(r)
	}
}

func differs(did string, peer int, typ op.Type, count uint64, here string, mine op.Type, n uint64) *call.Fault {
	return call.NewFault(call.Mismatch, peer, "%s %v x %d; %s it is %v x %d", did, typ, count, here, mine, n)
}

// withdraw takes r out, and reports whether no message had been matched with it.
func (b *Box) withdraw(r *Receiving) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.at(r.path)
	defer b.tidy(r.path, s)
	_, waited := take(&s.posted, func(p *Receiving) bool { return p == r })
	return waited
}

// revoke takes a sender's message out, and reports whether it had not been matched.
func (b *Box) revoke(p Path, from int, seq uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.at(p)
	defer b.tidy(p, s)
	_, waited := take(&s.arrived, func(a *arrival) bool { return a.from == from && a.seq == seq })
	return waited
}

// closedKept is how many Comms a Box remembers that are closed: what comes for one that it has
// forgotten waits until its sender gives it up.
const closedKept = 4096

// shut refuses what is there and what will come for a Comm.
func (b *Box) shut(comm uint64, code uint8) {
	b.mu.Lock()
	if b.closed[comm] == 0 {
		if len(b.list) < closedKept {
			b.list = append(b.list, comm)
		} else {
			delete(b.closed, b.list[b.next])
			b.list[b.next] = comm
			b.next = (b.next + 1) % closedKept
		}
	}
	b.closed[comm] = code
	var refused []*arrival
	for p, s := range b.slots {
		if p.Comm == comm {
			refused = append(refused, s.arrived...)
			s.arrived = nil
			b.tidy(p, s)
		}
	}
	b.mu.Unlock()
	for _, a := range refused {
		a.refuse(code)
	}
}
