package plane

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
)

// What a process is told of failures is decided by package gone; this file carries that out.

const (
	SettleFor = 150 * time.Millisecond // for a decision to come
)

// Post sends an event of this process on its way, unless the others have given it up: then they
// know better who is lost. Of a loss that all find they are told once: where another process has
// proposed it, this one's proposal stays here, to be believed should nobody decide.
func (s *Site) Post(e event.Event) {
	e.Origin = int32(s.Here.Mine)
	if e.Comm == 0 && call.Code(e.Code) == call.RankLost {
		s.Scan()
		if slices.Contains(s.Here.RanksOf(s.Here.Mine), int(e.Peer)) {
			// of its own ranks it may say so, also when another of them is lost
			e.Origin = e.Peer
		}
	}
	s.Job.mu.Lock()
	way := s.Job.World.Post(&e)
	s.Job.mu.Unlock()
	if way == gone.Dropped {
		return
	}
	s.flood.NumberEvent(&e)
	if e.Stage == event.Proposed {
		s.proposals.Add(e, s.Job.Time.Lived.Brief()+SettleFor)
	}
	if way == gone.Told {
		s.publish(e)
	}
}

// publish puts an event in the order of this host.
func (s *Site) publish(e event.Event) {
	if s.Here.Log.Append(e) {
		s.Scan()
		return
	}
	s.Job.Order.Lock()
	defer s.Job.Order.Unlock()
	s.handle(&e)
}

// Scan reads what other processes have added to the host's log.
func (s *Site) Scan() {
	if !s.Here.Log.HasNew() {
		return
	}
	s.Job.Order.Lock()
	defer s.Job.Order.Unlock()
	s.Here.Log.Read(func(e event.Event) { s.handle(&e) })
}

// handle does what this process has to do about an event, in the order of its host. Job.Order is held.
func (s *Site) handle(e *event.Event) {
	if call.Code(e.Code) == event.Voted {
		s.countVote(e, nil)
		s.decide()
		return
	}
	if on, first := s.flood.Event(e, nil); first {
		s.Job.mu.Lock()
		do := s.Job.World.Hear(e, s.seen(e))
		s.Job.mu.Unlock()
		if do.Pass {
			s.Job.Time.Coarse.WakeMonitor()
			on.To(s.Near.All())
		}
		s.carryOut(e, do)
	}
	s.decide()
}

// seen is what this process sees of the rank that e names. Job.mu is held.
func (s *Site) seen(e *event.Event) gone.Seen {
	w, seen := int(e.Peer), gone.Seen{Host: s.Here.Node}
	switch code := call.Code(e.Code); {
	case code == call.RankLost && e.Comm == 0:
		seen.Doubts = s.Near.Doubts(w)
	case code == event.ProcessLeft && s.Job.World.IsRank(w):
		seen.Process = s.Job.Net.ranksAlong(s.Job.World.Topo, w)
	}
	return seen
}

// decide gives the proposals their places, if this process is the one to do that.
func (s *Site) decide() {
	for {
		s.Job.mu.Lock()
		d, ok := s.Job.World.Decide(s.Job.Time.Lived.Brief(), s.Here.Node, s.Here.IsMine)
		s.Job.mu.Unlock()
		if !ok {
			return
		}
		if !s.Here.Log.Append(d) { // the scan that is under way comes to it
			s.handle(&d)
		}
	}
}

// expireProposals believes the proposals of this process that nobody has decided in time.
func (s *Site) expireProposals() {
	for _, e := range s.proposals.Due(s.Job.Time.Lived.Brief(), s.isMoot) {
		s.publish(e)
	}
}

// isMoot reports whether what e proposes, or another cause, is believed here.
func (s *Site) isMoot(e *event.Event) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	switch {
	case e.Comm == 0:
		return s.Job.World.Of(int(e.Peer)).Lost
	case len(s.Job.comms[e.Comm]) == 0: // of ranks elsewhere: see neverSplit
		return s.Job.World.Events.IsDecided(e)
	}
	for _, c := range s.Job.comms[e.Comm] {
		if c.Fate.cause.Load() == nil {
			return false
		}
	}
	return true
}

// carryOut does what was decided about e. Job.Order is held.
func (s *Site) carryOut(e *event.Event, do gone.Effects) {
	w := int(e.Peer)
	switch {
	case do.Answer:
		s.answerLeft(w)
	case do.Tally:
		s.sendTally(e)
	case do.Believe && call.Code(e.Code) == event.HostClosed:
		s.Job.markClosed(hostClosed{e.Comm, w})
	case do.Believe:
		if e.Comm == 0 && call.Code(e.Code) == call.RankLost {
			s.Here.Processes.NoteOut(w)
		}
		s.Job.failComms(e, do.Apart)
	}
	if do.NewLead {
		s.Job.joinLeads()
	}
}

// failComms has the Comms that e is about fail. apart: see gone.Effects.
func (j *Job) failComms(e *event.Event, apart bool) {
	j.mu.Lock()
	if j.broken.at == 0 && alarming(call.Code(e.Code)) {
		j.broken = broken{at: max(j.Clock(), 1), code: call.Code(e.Code)}
		for _, c := range j.comms.members(nil) { // all ranks say where they stand
			if apart {
				c.Standing.reports.Store(true)
			} else {
				c.Standing.asked.Store(true)
			}
		}
	}
	var all []*Member
	if e.Comm != 0 {
		all = append(all, j.comms[e.Comm]...)
	} else {
		all = j.comms.members(all)
	}
	j.mu.Unlock()
	for _, c := range all {
		j.failMember(c, e)
	}
}

// failMember fails c with e, if e concerns c.
func (j *Job) failMember(c *Member, e *event.Event) {
	if e.Comm == c.Group.ID() {
		f := e.Fault(c.Group.Rank(), c.Share.contradicts)
		if own := c.Fate.proposal.Load(); own != nil && int(e.From) == c.Group.Rank() && uint8(own.Code) == e.Code {
			f.Own, f.Err = own.Own, own.Err // which the event has as text; all else is what all ranks are told
			if inject.Wrong("plane.own") && f.Code == call.Timeout {
				f.Peer = -1
			}
		}
		c.FailHere(f)
		return
	}
	if e.Comm != 0 {
		return
	}
	r := c.Group.RankOf(int(e.Peer))
	if r < 0 {
		return
	}
	if r == c.Group.Rank() { // of a process that was stopped, and goes on too late
		c.FailHere(call.NewFault(call.RankLost, r, "the others have given this rank up: %w", e.Cause()))
		return
	}
	if c.Share.HasLeft(r) { // in good order; but a call of another engine does not find out by itself
		if c.Group.Topology().Node(r) != c.Group.Topology().Node(c.Group.Rank()) && c.Standing.Elsewhere.foreignSince() != 0 {
			c.FailHere(&call.Fault{Code: call.Closed, Peer: r})
		}
		return
	}
	f := &call.Fault{Code: call.Code(e.Code), Peer: r, Certain: e.Loss == event.Certain, Err: e.Cause()}
	var first *call.Fault
	if e.Loss != event.Suspected && c.Standing.outlive(f) {
		first = c.Fate.Outlived()
	} else {
		c.FailHere(f)
		first = c.Fate.cause.Load()
	}
	if first != f && c.Hooks.OnFail != nil {
		c.Hooks.OnFail(f, true)
	}
}

// CatchUp reads what the others of the host have said: in the log, and in this process's pulse what
// they believe of its ranks, where the log has gone on without it.
func CatchUp(s *Site) {
	s.Scan()
	believeOut(s)
}

// isGivenUp reports whether the others have given this process up.
func (s *Site) isGivenUp() bool {
	CatchUp(s)
	return s.Job.IsLost(s.Here.Mine)
}

// believeOut has s believe of the ranks of its process what the others do, where the log does not say it any more.
func believeOut(s *Site) {
	for _, w := range s.Here.Processes.Outside() {
		e := event.New(0, call.RankLost, w, w, s.Here.Node, errors.New("its process was silent"))
		s.Job.Order.Lock()
		s.Job.mu.Lock()
		do := s.Job.World.Believe(&e, s.seen(&e))
		s.Job.mu.Unlock()
		s.carryOut(&e, do)
		s.Job.Order.Unlock()
	}
}

// LostProcess reports the ranks of the process whose lowest rank is first, unless the others have
// given up all ranks of this one: they may have come to their end without it.
func (s *Site) LostProcess(first int, why error) {
	s.Here.Processes.GiveUp(first)
	CatchUp(s)
	if !slices.ContainsFunc(s.Here.RanksOf(s.Here.Mine), func(w int) bool { return !s.Job.IsLost(w) }) {
		return
	}
	for _, w := range s.Here.RanksOf(first) {
		s.Lost(w, why)
	}
}

// Lost reports that rank w of the world is gone. With watch.ErrEnded itself as the cause that is certain.
func (s *Site) Lost(w int, cause error) {
	e := event.New(0, call.RankLost, w, -1, s.Here.Node, cause)
	switch {
	case cause == watch.ErrEnded:
		e.Loss = event.Certain
	case errors.Is(cause, watch.ErrEnded):
		e.Loss = event.Ended
	}
	s.Post(e)
}

// answerLeft says whether a rank of this host has left in good order, if it has.
func (s *Site) answerLeft(w int) {
	if w < 0 || w >= s.Job.World.Topo.Size() || !s.Here.Leads() || s.Job.World.Topo.Node(w) != s.Here.Node {
		return
	}
	s.Job.mu.Lock()
	left := s.Job.World.Of(w).Left || s.Here.Processes.HasLeft(w)
	s.Job.mu.Unlock()
	if left {
		e := event.New(0, event.RankLeft, w, -1, s.Here.Node, nil)
		if s.Job.TryHold() {
			go func() { // not within the order of what is being handled
				defer s.Job.Leave()
				s.Post(e)
			}()
		}
	}
}

// Which rank is odd. A mismatch has two sides, and the first to see it may be on the wrong one: a rank
// that has left a call out often comes first. So, before a mismatch is believed, the ranks that
// have made the collective in dispute are counted, and it is told as that of a rank on a smaller
// side with one on the largest. The ranks of one host are counted in its memory by the rank that reports it.
// Where a Comm spans hosts, each of them tells how many of its ranks are on which side, up the tree
// of the control plane, and the process that decides (gone.State.Decide) counts. Both go on as soon as
// ranks that have not come yet can change nothing, and wait for a moment at most; for a host that
// has not said yet which of its ranks have come, somewhat longer.

const holdHere = 5 * time.Millisecond // for the ranks of a host to come to the collective in dispute

// parties counts the ranks of this host that have made the collective of that place.
func (c *Share) parties(place uint64) (p event.Parties) {
	c.Look(func() {
		for r := range c.N {
			if rec, ok := c.Local.Made(r, place); ok {
				p.Add(event.Party{Call: rec, Rank: int32(c.group.LocalRank(r)), N: 1})
			}
		}
	})
	return p
}

// dispute reports a mismatch when the sides are known.
func (c *Member) dispute(e event.Event) {
	if c.Share.N < c.Group.Size() {
		e.Size = int32(c.Group.Size())
		c.Site.Post(e)
		return
	}
	settled := func() bool {
		p := c.Share.parties(e.Call.Place)
		if _, sure := p.Largest(c.Share.N); !sure {
			return false
		}
		e.BlameMinority(p, c.Share.N)
		c.Site.Post(e)
		return true
	}
	if settled() {
		return
	}
	c.Site.Job.Hold()
	go func() {
		defer c.Site.Job.Leave()
		for over := briefly(c.Site.Job, holdHere); !over(); {
			time.Sleep(napMax)
			if c.Fate.cause.Load() != nil || settled() {
				return
			}
		}
		e.BlameMinority(c.Share.parties(e.Call.Place), c.Share.N)
		c.Site.Post(e)
	}()
}

// sendVotes tells which ranks have made the collective of that place, until all ranks of this host have. The
// first answer says where it ends, even if no rank has come yet.
func (c *Member) sendVotes(place uint64) {
	sent := map[uint32]int{}
	for over := briefly(c.Site.Job, event.HoldFar); c.Fate.cause.Load() == nil &&
		!c.Fate.closed.Load(); time.Sleep(napMax) {
		parties, all, first := c.Share.parties(place), 0, len(sent) == 0
		if len(parties) == 0 && first {
			parties.Add(event.Party{Call: call.Record{Place: place}})
		}
		for i, p := range parties {
			all += p.N
			if n, said := sent[p.Call.Hash]; said && n == p.N {
				continue
			}
			sent[p.Call.Hash] = p.N
			e := event.New(c.Group.ID(), event.Voted, p.N, int(p.Rank), c.Site.Here.Node, nil)
			if e.Call = p.Call; first && i == len(parties)-1 {
				e.Size = int32(c.Share.N)
			}
			c.Site.Post(e)
		}
		if all == c.Share.N || over() {
			return
		}
	}
}

// sendTally has this host tell which of its ranks are on which side of e, once.
func (s *Site) sendTally(e *event.Event) {
	place := e.Call.Place
	s.Job.mu.Lock()
	var first *Member
	for _, c := range s.Job.comms[e.Comm] {
		if c.Site == s && c.Share.Me == 0 && !slices.Contains(c.Fate.voted, place) {
			c.Fate.voted = append(c.Fate.voted, place)
			first = c
		}
	}
	s.Job.mu.Unlock()
	if first == nil || !s.Job.TryHold() {
		return
	}
	go func() { // not within the order of what is being handled
		defer s.Job.Leave()
		first.sendVotes(place)
	}()
}

// reconsider decides what has become ripe.
func (s *Site) reconsider() {
	s.Job.mu.Lock()
	undecided := s.Job.World.Events.Any()
	s.Job.mu.Unlock()
	if !undecided {
		return
	}
	s.Job.Order.Lock()
	s.decide()
	s.Job.Order.Unlock()
	s.Scan()
}

// countVote counts a vote, and sends it on to those nearer to the host that decides.
func (s *Site) countVote(e *event.Event, from *control.Conn) {
	s.Job.mu.Lock()
	decided := s.Job.World.Events.IsDecided(e)
	s.Job.mu.Unlock()
	if e.Peer < 0 || decided {
		return
	}
	on, first := s.flood.Event(e, from)
	if !first {
		return
	}
	s.Job.mu.Lock()
	s.Job.World.Events.Vote(e, s.Job.Time.Lived.Brief())
	s.Job.mu.Unlock()
	on.To(s.Near.Through(func(c *control.Conn) bool { return c.Host < s.Here.Node && c.InTree(s.Here.Node) }))
}

// AnnounceClosed tells the other hosts that all ranks of this one have closed c. A process that
// leaves the job with its first Comm need not: its good bye says so.
func (c *Standing) AnnounceClosed() {
	if n := c.Site.Job.World.Topo.Nodes(); n == 1 || n > announcedMost || c.group.Topology().Nodes() == 1 ||
		c.group.ID() == group.WorldID && c.Site.Job.isLastHold() {
		return
	}
	c.Site.Post(event.New(c.group.ID(), event.HostClosed, c.group.World(c.group.Rank()), -1, c.Site.Here.Node, nil))
}
