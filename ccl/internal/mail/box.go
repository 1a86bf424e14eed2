package mail

import (
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/op"
)

// Box is where one rank's messages wait for receives, and its receives for messages. All that is matched is
// matched here, and whatever undoes a match undoes it here.
type Box struct {
	mu     sync.Mutex
	slots  map[Path]*slot
	posts  uint64           // how many receives there have been
	closed map[uint64]uint8 // Comms that the rank has closed, or that have failed: what senders are told
	list   []uint64         // the same, oldest first from next on
	next   int
}

// slot is what waits on one path: of the first two lists at most one has entries that match.
type slot struct {
	posted  []*Receiving // in the order in which they were posted
	arrived []*arrival
	moving  *Receiving // the first of those whose payload is on its way: see stay
}

// stay removes from the list of what moves all but those that keep their place by is.
func (s *slot) stay(is func(*Receiving) bool) {
	for at := &s.moving; *at != nil; {
		if r := *at; is(r) {
			at = &r.at.behind
		} else {
			*at, r.at.behind = r.at.behind, nil
		}
	}
}

// leave removes r from that list, and reports whether it was there.
func (s *slot) leave(r *Receiving) (was bool) {
	s.stay(func(m *Receiving) bool { was = was || m == r; return m != r })
	return was
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

// isHere reports whether nothing of the payload is still to come.
func (a *arrival) isHere() bool { return a.body != nil || a.count == 0 }

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
	if len(s.posted) == 0 && len(s.arrived) == 0 && s.moving == nil {
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

// post gives r, which is new, the first message that matches, or has it wait for that.
func (b *Box) post(r *Receiving) {
	b.mu.Lock()
	b.posts++
	r.at.nth = b.posts
	a := b.wait(r)
	b.mu.Unlock()
	if a != nil {
		match(r, a)
	}
}

// wait gives r the first message that matches, or puts it where it belongs among those that wait. b.mu is held.
func (b *Box) wait(r *Receiving) *arrival {
	s := b.at(r.path)
	defer b.tidy(r.path, s)
	a, here := take(&s.arrived, func(a *arrival) bool { return r.takes(a.from) })
	if here {
		s.matched(r, a)
		return a
	}
	i := len(s.posted)
	for i > 0 && s.posted[i-1].at.nth > r.at.nth {
		i--
	}
	s.posted = slices.Insert(s.posted, i, r)
	return nil
}

// deliver gives a to the first receive that it matches, or keeps it.
func (b *Box) deliver(p Path, a *arrival) {
	b.mu.Lock()
	if code := b.closed[p.Comm]; code != 0 {
		b.mu.Unlock()
		a.answer(code, 0, 0)
		return
	}
	s := b.at(p)
	r, waits := take(&s.posted, func(r *Receiving) bool { return r.takes(a.from) })
	if waits {
		s.matched(r, a)
	} else {
		s.arrived = append(s.arrived, a)
	}
	b.tidy(p, s)
	b.mu.Unlock()
	if waits {
		match(r, a)
	}
}

// matched notes that r is given a: whatever moves, and would have been given a if it had still waited, has
// lost its place. The Box's lock is held.
func (s *slot) matched(r *Receiving, a *arrival) {
	if !inject.Wrong("mail.place") {
		s.stay(func(m *Receiving) bool { return !m.takes(a.from) })
	}
	moves := r.like(a) && !a.isHere()
	if moves {
		s.moving, r.at.behind = r, s.moving
	}
	r.mu.Lock()
	r.got.source, r.got.moves = a.from, moves
	r.mu.Unlock()
}

// match moves a into r. Here and elsewhere r ends before the sender is told: that one may then close the
// Comm, which ends what still waits for it.
func match(r *Receiving, a *arrival) {
	switch {
	case !r.like(a):
		r.end(differs("it has sent", a.from, a.typ, a.count, "here", r.typ, r.count))
		a.answer(takenNot, r.typ, r.count)
	case a.isHere():
		a.answer(r.received(r.copyIn(a.body)), 0, 0)
	default:
		a.fetch(r)
	}
}

// like reports whether r is of a's type and count.
func (r *Receiving) like(a *arrival) bool { return r.typ == a.typ && r.count == a.count }

func differs(did string, peer int, typ op.Type, count uint64, here string, mine op.Type, n uint64) *call.Fault {
	return call.NewFault(call.Mismatch, peer, "%s %v x %d; %s it is %v x %d", did, typ, count, here, mine, n)
}

// withdraw takes r out, and reports whether it waited; with moving, also whether its payload was on the way.
func (b *Box) withdraw(r *Receiving, moving bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[r.path]
	if s == nil {
		return moving && r.got.moves
	}
	defer b.tidy(r.path, s)
	_, waited := take(&s.posted, func(p *Receiving) bool { return p == r })
	if waited || !moving {
		return waited
	}
	s.leave(r)
	return r.got.moves
}

// landed notes that the payload of r is on its way no more.
func (b *Box) landed(r *Receiving) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.slots[r.path]; s != nil {
		s.leave(r)
		b.tidy(r.path, s)
	}
}

// undo has r wait again where it did before it was matched with a message that its sender has given up. It
// is false if r has lost its place to a message that was matched since, and would have been r's.
func (b *Box) undo(r *Receiving) bool {
	b.mu.Lock()
	var a *arrival
	s := b.slots[r.path]
	kept := s != nil && s.leave(r)
	if kept {
		r.mu.Lock()
		r.got = intake{source: -1}
		r.mu.Unlock()
		a = b.wait(r)
	}
	b.mu.Unlock()
	if a != nil {
		match(r, a)
	}
	return kept
}

// revoke takes a sender's message out, and reports whether it had not been matched.
func (b *Box) revoke(p Path, from int, seq uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[p]
	if s == nil {
		return false
	}
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
		a.answer(code, 0, 0)
	}
}
