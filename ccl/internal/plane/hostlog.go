package plane

import (
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What the log of a host has no room for. A writer keeps it until the slowest process of the host
// has read far enough, and waits for nobody: that a Comm has failed shows meanwhile in its abort
// word. Processes that have left, are dead or were given up do not count.

// appendLog puts e into the log of this host, or keeps it until there is room.
func (s *host) appendLog(h *shm.Host, e event.Event) {
	s.log.kept.Lock()
	defer s.log.kept.Unlock()
	s.log.kept.events = append(s.log.kept.events, e)
	s.appendInOrder(h)
}

// appendKept appends what there is room for by now, and reports whether that is all.
func (s *host) appendKept() bool {
	s.Job.mu.Lock()
	h := s.Host
	s.Job.mu.Unlock()
	s.log.kept.Lock()
	defer s.log.kept.Unlock()
	if h.Shared() {
		s.appendInOrder(h)
	}
	return len(s.log.kept.events) == 0
}

// hasKept reports whether there are events that the log had no room for.
func (s *host) hasKept() bool {
	s.log.kept.Lock()
	defer s.log.kept.Unlock()
	return len(s.log.kept.events) > 0
}

// appendInOrder appends the first of what was kept, in its order. s.log.kept is held.
func (s *host) appendInOrder(h *shm.Host) {
	u := &s.log.kept
	done := 0
	for done < len(u.events) && boardOf(h).log.Append(&u.events[done], s.Job.World.Topo.Local(s.Mine), s.hasRead) {
		done++
	}
	if u.events = u.events[done:]; len(u.events) == 0 {
		u.events = nil
	}
	if done > 0 {
		s.ring(dozes)
	}
}

// hasRead reports whether all processes of this host that count have read what was in the slot of event i before.
func (s *host) hasRead(i uint64) bool {
	if i < shm.RingSlots {
		return true
	}
	oldest := i - shm.RingSlots // which is overwritten
	if s.log.scanned.Load() <= oldest {
		return false
	}
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	for j := range s.processes.others {
		// An acquire: what is stored into the slot after it comes after the reader's loads, before which it did
		// not store this.
		if o := &s.processes.others[j]; s.processes.pulses[o.local].read.Load() <= oldest && !s.isOut(o) {
			return false
		}
	}
	return true
}

// isOut reports whether a process of this host reads and writes no more. Job.mu is held.
func (s *host) isOut(o *watched) bool {
	p := &s.processes.pulses[o.local]
	return o.gone || p.left.Load() != 0 || p.death.Load()&proc.OwnerDied != 0 ||
		s.Job.World.Of(s.Job.World.Topo.Rank(s.Node, o.local)).Lost
}

// writesNoMore is isOut of the process whose lowest rank is the l-th of this host.
func (s *host) writesNoMore(l int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	for i := range s.processes.others {
		if o := &s.processes.others[i]; o.local == l {
			return s.isOut(o)
		}
	}
	return false
}

// showRead says how far this process has read the log.
func (s *host) showRead(next uint64) {
	s.log.scanned.Store(next)
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	if s.processes.pulse != nil {
		s.processes.pulse.read.Store(next) // a release: the loads of what was read come before it
	}
}
