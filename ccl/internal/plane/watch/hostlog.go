package watch

import (
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Log is how far this process has read and written what the processes of a host tell each other:
// events, and where ranks stand. What the log of events has no room for a writer keeps until the
// slowest process of the host has read far enough, and it waits for nobody: that a Comm has failed
// shows meanwhile in its abort word. Processes that have left, are dead or were given up do not count.
type Log struct {
	host    *Host
	scanned atomic.Uint64 // of the log of events
	read    uint64        // of the statuses; the monitor's
	kept    struct {      // events that the log had no room for yet
		sync.Mutex
		events []event.Event
	}
}

// Append puts e into the log of this host, or keeps it until there is room. It is false where the
// host has none: no other process is there, or this one only joins the job, or has left it.
func (s *Log) Append(e event.Event) bool {
	h := s.host.memory()
	if !h.Shared() {
		return false
	}
	s.kept.Lock()
	defer s.kept.Unlock()
	s.kept.events = append(s.kept.events, e)
	s.appendInOrder(h)
	return true
}

// AppendKept appends what there is room for by now, and reports whether that is all.
func (s *Log) AppendKept() bool {
	h := s.host.memory()
	s.kept.Lock()
	defer s.kept.Unlock()
	if h.Shared() {
		s.appendInOrder(h)
	}
	return len(s.kept.events) == 0
}

// HasKept reports whether there are events that the log had no room for.
func (s *Log) HasKept() bool {
	s.kept.Lock()
	defer s.kept.Unlock()
	return len(s.kept.events) > 0
}

// appendInOrder appends the first of what was kept, in its order. s.kept is held.
func (s *Log) appendInOrder(h *shm.Host) {
	u := &s.kept
	done := 0
	for done < len(u.events) && BoardOf(h).Log.Append(&u.events[done], s.host.place(), s.hasRead) {
		done++
	}
	if u.events = u.events[done:]; len(u.events) == 0 {
		u.events = nil
	}
	if done > 0 {
		s.host.Processes.ring(Dozes)
	}
}

// hasRead reports whether all processes of this host that count have read what was in the slot of event i before.
func (s *Log) hasRead(i uint64) bool {
	if i < shm.RingSlots {
		return true
	}
	oldest := i - shm.RingSlots // which is overwritten
	if s.scanned.Load() <= oldest {
		return false
	}
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	p := &s.host.Processes
	for j := range p.others {
		// An acquire: what is stored into the slot after it comes after the reader's loads, before which it did
		// not store this.
		if o := &p.others[j]; p.pulses[o.local].read.Load() <= oldest && !p.isOut(o) {
			return false
		}
	}
	return true
}

// isOut reports whether a process of this host reads and writes no more. Job.Mu is held.
func (s *Processes) isOut(o *watched) bool {
	p, w := &s.pulses[o.local], &s.host.World.Ranks
	return o.gone || p.left.Load() != 0 || p.death.Load()&proc.OwnerDied != 0 ||
		w.Of(w.Topo.Rank(s.host.Node, o.local)).Lost
}

// writesNoMore is isOut of the process whose lowest rank is the l-th of this host.
func (s *Processes) writesNoMore(l int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	for i := range s.others {
		if o := &s.others[i]; o.local == l {
			return s.isOut(o)
		}
	}
	return false
}

// HasNew reports whether another process has added to the log of events.
func (s *Log) HasNew() bool {
	h := s.host.memory()
	return h.Shared() && BoardOf(h).Log.Claimed() != s.scanned.Load()
}

// Read reads what others have added to the log of events, and calls take with each. Its callers hold
// the lock that orders events, so that nobody else reads.
func (s *Log) Read(take func(event.Event)) {
	h := s.host.memory()
	if !h.Shared() {
		return
	}
	next := s.scanned.Load()
	BoardOf(h).Log.Unread(&next, s.host.Processes.writesNoMore, func(e event.Event) {
		s.showRead(next)
		take(e)
	})
	s.showRead(next)
}

// showRead says how far this process has read the log.
func (s *Log) showRead(next uint64) {
	s.scanned.Store(next)
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if p := s.host.Processes.pulse; p != nil {
		p.read.Store(next) // a release: the loads of what was read come before it
	}
}

// ReadBoard reads where ranks of other processes of this host stand, and calls take with each. It is the monitor's.
func (s *Log) ReadBoard(take func(status.Status)) {
	h := s.host.memory()
	if !h.Shared() || BoardOf(h).Status.Claimed() == s.read {
		return
	}
	BoardOf(h).Status.Unread(&s.read, s.host.Processes.writesNoMore, take)
}

// boardPart is a part of the board's slots: a process that dozes is rung before what it has not read is overwritten.
const boardPart = shm.RingSlots / 4

// Tell puts where a rank stands on the board, for the other processes of this host. There are some.
func (s *Log) Tell(st *status.Status) {
	board := &BoardOf(s.host.Host).Status
	before := board.Claimed() / boardPart
	board.Append(st, s.host.place(), nil)
	if board.Claimed()/boardPart != before {
		s.host.Processes.ring(Dozes)
	} else {
		s.host.Processes.ring(Idles)
	}
}

// HasUnread reports whether this process has not read something of the log, or of the board, that
// is to wake a monitor that sleeps so.
func (s *Log) HasUnread(how uint32) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	h := s.host.Host
	if !h.Shared() {
		return false
	}
	told := BoardOf(h).Status.Claimed() - s.read
	return BoardOf(h).Log.Claimed() != s.scanned.Load() || told > 0 && how == Idles || told >= boardPart
}

// CanIdle reports whether this process would be rung.
func (s *Host) CanIdle() bool {
	s.Mu.Lock()
	h, guarded := s.Host, s.Processes.guarded
	s.Mu.Unlock()
	if !h.Shared() {
		return true
	}
	return !s.Log.HasKept() && guarded && s.Ends.Ringer.Load() != nil
}
