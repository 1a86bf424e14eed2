package gone

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// State is what one process has been told: which ranks have gone, what is proposed, and what is decided.
type State struct {
	Ranks
	Events event.Sequencer // a process keeps proposals even if another decides, so that it can take over
}

// Seen is what a process sees of the rank that an event names, beside what it is told.
type Seen struct {
	Host    int   // the process's own
	Doubts  bool  // the rank may have given this process up before, and gone on
	Process []int // the ranks in its process, if it is on another host
}

// Effects is what a process does about an event, in this order.
type Effects struct {
	Pass    bool // the event goes on to the neighboring hosts
	Answer  bool // the host says whether the rank has left
	Tally   bool // the host says how many of its ranks are on which side of the mismatch
	Believe bool // the Comms that the event concerns fail, or note that a host has closed them
	Apart   bool // a rank was lost, and the process that reports where all stood is on another host
	NewLead bool // the rank's host has another lead: its neighbors connect with that
}

// IsStale reports whether e comes from a process that is lost itself by now. A process that was
// stopped, and goes on after the others have given it up, blames the others for the end of its
// connections: nobody may believe that. A lost rank may report its own loss. It cannot change a
// decision.
func (s *State) IsStale(e *event.Event) bool {
	if e.Stage == event.Decided || call.Code(e.Code) > call.Closed && call.Code(e.Code) != event.NewLead ||
		e.Origin == e.Peer {
		return false
	}
	return s.gone[int(e.Origin)].Lost
}

// Way is what becomes of an event that this process finds.
type Way uint8

const (
	Dropped Way = iota // it is known, or nobody may believe it
	Kept               // another has proposed it: this process believes it should nobody decide
	Told               // the log of the host is told, and by it all
)

// Post says what becomes of e, and makes it a proposal if one host of several is to decide it.
func (s *State) Post(e *event.Event) Way {
	if isLoss(e) && (s.gone[int(e.Peer)].Lost || s.IsStale(e)) {
		return Dropped
	}
	if s.Topo.Nodes() > 1 && call.Code(e.Code) <= call.Closed {
		e.Stage = event.Proposed
	}
	if e.Stage == event.Proposed && call.Code(e.Code) == call.RankLost && s.isProposed(e) {
		return Kept
	}
	return Told
}

// isProposed reports whether another process that is not lost has proposed the loss that e tells of, at
// least as certainly: then e need not be told as well.
func (s *State) isProposed(e *event.Event) bool {
	return slices.ContainsFunc(s.Events.Alike(e), func(o event.Event) bool { return !s.IsStale(&o) })
}

// Hear takes in an event that has come for the first time, in the order of the host.
func (s *State) Hear(e *event.Event, seen Seen) (do Effects) {
	if s.IsStale(e) {
		return do
	}
	s.Events.Remember(e)
	switch {
	case call.Code(e.Code) == event.AskLeft:
		do.Answer = true
	case e.Stage != event.Proposed:
		do = s.Believe(e, seen)
	case e.Size > 0:
		do.Tally = true
	case isLoss(e) && s.IsRank(int(e.Peer)):
		do.NewLead = s.Report(int(e.Peer))
	}
	do.Pass = true
	return do
}

// isLoss reports whether e says that a rank of the world is lost.
func isLoss(e *event.Event) bool { return e.Comm == 0 && call.Code(e.Code) == call.RankLost }

// Believe has this process believe e.
func (s *State) Believe(e *event.Event, seen Seen) (do Effects) {
	w := int(e.Peer)
	if call.Code(e.Code) <= call.Closed {
		do.Believe = true
		if isLoss(e) && s.IsRank(w) {
			s.Lose(w, e.Loss == event.Certain)
			if r := s.gone[w]; seen.Doubts && e.Loss != event.Certain && !r.Doubted {
				r.Doubted = true
				s.set(w, r)
			}
			do.Apart = s.ReportsApart(w)
			do.NewLead = s.Report(w)
		}
		return do
	}
	if !s.IsRank(w) {
		return do
	}
	switch h := s.Topo.Node(w); call.Code(e.Code) {
	case event.ProcessLeft:
		if h != seen.Host { // its own host says more
			do.NewLead = s.Leave(h, seen.Process)
		}
	case event.RankLeft:
		do.NewLead = s.Leave(h, []int{w})
	case event.NewLead:
		s.Occupy(h)
	case event.HostClosed:
		do.Believe = true
	}
	return do
}

// Decide gives the next proposal its place, if that is for this process to do: it leads host h, the
// lowest that has a lead. leads reports whether the process has a rank. now is in lived time, as of
// Lived.Brief.
func (s *State) Decide(now time.Duration, h int, leads func(w int) bool) (d event.Event, ok bool) {
	if s.Events.Prune() == 0 {
		return d, false
	}
	if w := s.Lead(h); w < 0 || !leads(w) || !s.isLowest(h) && !inject.Wrong("gone.decide") {
		return d, false
	}
	return s.Events.Next(now)
}
