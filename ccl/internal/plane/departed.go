package plane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/auth"
)

// HasLeft reports whether rank r has closed the Comm, as far as is known: of another host once all its ranks have.
func (c *Share) HasLeft(r int) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.group.Topology().Node(r) != c.group.Topology().Node(c.group.Rank()) {
		return slices.Contains(c.closed, c.group.Topology().Node(r))
	}
	return c.gone || c.Local.State(c.group.Topology().Local(r)).Load() == region.StateClosed
}

// isGivenUp reports whether the others have given this process up.
func (s *Site) isGivenUp() bool {
	CatchUp(s)
	return s.Job.IsLost(s.Here.Mine)
}

// LostOf notes in lost which ranks of g are lost, and returns how many of the job's are.
func (j *Job) LostOf(g *group.Group, lost []bool) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range lost {
		lost[r] = j.World.Of(g.World(r)).Lost
	}
	return j.World.Losses()
}

// Losses is how many ranks of the job are known to be lost.
func (j *Job) Losses() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Losses()
}

// HasEnded reports whether rank w of the world is lost and its end is certain.
func (j *Job) HasEnded(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Of(w).Certain
}

// IsLost reports whether rank w of the world is known to be lost.
func (j *Job) IsLost(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Of(w).Lost
}

// leftYet is the question whether the process of rank w of the world has left in good order, as known
// says, such as KnownLeft. A process that asks for the first time asks w's host, too, and again later; the
// answer takes a moment.
func (s *Site) leftYet(w int, known func(w int) bool) func() bool {
	asked, again := false, time.Duration(0)
	return func() bool {
		s.Scan()
		if known(w) {
			return true
		}
		if now := s.Job.Time.Lived.Now(); !asked || now >= again {
			asked, again = true, now+askAgain
			s.Post(event.New(0, event.AskLeft, w, -1, s.Here.Node, nil))
		}
		return false
	}
}

// EndedYet is the question whether the process of rank w of the world is known to have ended, in
// good order or not: then it will not listen again. Any goroutine may ask.
func (s *Site) EndedYet(w int) func() bool {
	left := s.leftYet(w, s.KnownLeft)
	return func() bool {
		if !s.Job.TryHold() { // this process has left, and asks in vain
			return true
		}
		defer s.Job.Leave()
		return left() || s.Job.IsLost(w)
	}
}

// KnownLeft reports whether this process knows that rank w's has left in good order.
func (s *Site) KnownLeft(w int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.HasLeft(w)
}

// endOf is why s takes the ranks of the process of rank w of the world, on another host, for lost,
// where that seems to have ended. refused says that its host answers that nobody listens at its
// port any more.
func endOf(s *Site, w int, refused bool) error {
	switch {
	case !refused: // a cut may look like an end
		return fmt.Errorf("%w, or its host cannot be reached", errEnded)
	case !IsCertain(s, w):
		return fmt.Errorf("%w, perhaps after it had given up this host", errEnded)
	}
	return errEnded
}

// throughRelay is why, the end of connection c, or more if c passed a relay: that may be what ended.
func throughRelay(c *auth.Stream, why error) error {
	if by, ok := c.RemoteAddr().(interface{ Relay() string }); ok {
		return fmt.Errorf("%w, or the relay at %s, or its host, cannot be reached", errEnded, by.Relay())
	}
	return why
}

// IsCertain reports whether the word of the host of rank w of the world that the rank is there no
// more, since its process has ended or has closed the Comm, makes it certain that it has not gone
// on without the process of s.
func IsCertain(s *Site, w int) bool {
	if s.isGivenUp() {
		return false
	}
	j := s.Job
	if j.peer <= 0 { // nobody is given up for silence
		return true
	}
	now := j.Time.Lived.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, unheard := stoodStill(s, w); unheard {
		return false
	}
	h, ever := s.near.heard[j.World.Topo.Node(w)]
	return ever && now-h.last <= trusted(j) || j.World.AllCertain()
}

// believeOut has s believe of the ranks of its process what the others do, where the log does not say it any more.
func believeOut(s *Site) {
	for _, w := range s.Here.ranksOf(s.Here.Mine) {
		s.Job.mu.Lock()
		p := s.Here.processes.pulses
		out := p != nil && p[s.Job.World.Topo.Local(w)].out.Load() != 0 && !s.Job.World.Of(w).Lost
		s.Job.mu.Unlock()
		if out {
			e := event.New(0, call.RankLost, w, w, s.Here.Node, errors.New("its process was silent"))
			s.Job.Order.Lock()
			s.Job.mu.Lock()
			do := s.Job.World.Believe(&e, s.seen(&e))
			s.Job.mu.Unlock()
			s.carryOut(&e, do)
			s.Job.Order.Unlock()
		}
	}
}

// empty reports whether a rank of this host, of which nothing is there, will never send anything:
// its process has ended, or the Comm has failed there, so that it makes no call any more.
func (c *Standing) empty(peer int) bool {
	if peer < 0 || c.group.Topology().Node(peer) != c.group.Topology().Node(c.group.Rank()) {
		return false
	}
	s, ok := c.Site.Job.Statuses.At(c.group.ID(), int32(peer))
	return ok && s.Failed || c.Site.Job.IsLost(c.group.World(peer))
}

// lostProcess reports the ranks of the process whose lowest rank is first, unless the others have
// given up all ranks of this one: they may have come to their end without it.
func (s *Site) lostProcess(first int, why error) {
	s.Job.mu.Lock()
	for i := range s.Here.processes.others { // also where only its socket tells
		if o := &s.Here.processes.others[i]; s.Job.World.Topo.Rank(s.Here.Node, o.local) == first {
			o.gone = true
		}
	}
	s.Job.mu.Unlock()
	CatchUp(s)
	if !slices.ContainsFunc(s.Here.ranksOf(s.Here.Mine), func(w int) bool { return !s.Job.IsLost(w) }) {
		return
	}
	for _, w := range s.Here.ranksOf(first) {
		s.Lost(w, why)
	}
}

// hasParted reports whether no Comm of this process can be in a call with any of those ranks of the
// world, which were one process.
func hasParted(s *Site, ranks []int) bool {
	s.Job.mu.Lock()
	for _, w := range ranks {
		if !s.Job.World.Of(w).Lost {
			s.Job.mu.Unlock()
			return false
		}
	}
	all := s.Job.comms.members(nil) // a later one fails as it begins: see add
	s.Job.mu.Unlock()
	for _, c := range all {
		for _, w := range ranks {
			if r := c.Group.RankOf(w); r >= 0 && c.Fate.Cause() == nil && !c.Share.HasLeft(r) {
				return false
			}
		}
	}
	return true
}

// partFrom parts from the processes that have ended, and empties their slices where this one is the last that does.
func partFrom(s *Site, leaves bool) {
	s.Job.mu.Lock()
	h, p := s.Here.Host, &s.Here.processes
	if p.pulse == nil || p.reaps && !leaves || h.Slices().Jobs() > 1 && (!leaves || h.Slices().IsHome(boardOf(h).number)) {
		s.Job.mu.Unlock()
		return
	}
	var ended []int
	for i := range p.others {
		if l := p.others[i].local; p.pulses[l].death.Load()&proc.OwnerDied != 0 && p.pulses[l].own.Load() != 0 {
			ended = append(ended, l)
		}
	}
	s.Job.mu.Unlock()
	var due []*atomic.Uint64
	for _, l := range ended {
		if !leaves && !hasParted(s, s.Here.ranksOf(s.Job.World.Topo.Rank(s.Here.Node, l))) {
			continue
		}
		s.Job.mu.Lock()
		if p.pulse != nil {
			words := partedWords(len(p.pulses))
			row, mine := p.parted[l*words:][:words], s.Job.World.Topo.Local(s.Here.Mine)
			row[mine/64].Or(1 << (mine % 64))
			if p.allParted(row) {
				due = append(due, &p.pulses[l].own)
			}
		}
		s.Job.mu.Unlock()
	}
	if len(due) > 0 {
		s.Job.mu.Lock()
		p.reaps = true
		s.Job.mu.Unlock()
		s.Job.Life.Wg.Go(func() { reap(s, due) }) // close waits for it before it closes the host's memory
	}
}

// reapEnded is the monitor's look after the slices of processes of this host that have ended.
func reapEnded(s *Site) { partFrom(s, false) }

// reapLeaving is the last look of a process that leaves the job, and is in no call of it any more.
// A process that goes on in the job that has grown out of this job would not look again.
func reapLeaving(s *Site) { partFrom(s, true) }
