package plane

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/region"
)

// One cause for all. On a host, events are believed in the order in which they stand in its log.
// Between hosts a rank proposes; the lead (see succession.go) of the lowest host that has one puts all
// proposals in order, and what it has decided is believed everywhere in that order: each host passes
// events on in the order in which it believes them, and connections keep that. While the hosts can
// reach each other, every rank of a Comm so gets the same cause. A proposal that is not decided in
// time, as in a partition, is believed by the ranks that receive it.

const (
	SettleFor = 150 * time.Millisecond // for a decision to come
)

// Post sends an event of this process on its way, unless the others have given it up: then they
// know better who is lost. Of a loss that all find they are told once: where another process has
// proposed it, this one's proposal stays here, to be believed should nobody decide.
func (s *Site) Post(e event.Event) {
	loss := call.Code(e.Code) == call.RankLost
	e.Origin = int32(s.Here.Mine)
	if e.Comm == 0 && loss {
		s.Scan()
		if slices.Contains(s.Here.ranksOf(s.Here.Mine), int(e.Peer)) {
			// of its own ranks it may say so, also when another of them is lost
			e.Origin = e.Peer
		}
		if s.Job.IsLost(int(e.Peer)) || s.isStale(&e) {
			return
		}
	}
	s.flood.NumberEvent(&e)
	if s.Job.World.Topo.Nodes() > 1 && call.Code(e.Code) <= call.Closed {
		e.Stage = event.Proposed
		s.proposals.Add(e, s.Job.Time.Lived.Brief()+SettleFor)
		if loss && slices.ContainsFunc(s.Job.undecided.Alike(&e), func(o event.Event) bool { return !s.isStale(&o) }) {
			return
		}
	}
	s.publish(e)
}

// publish puts an event in the order of this host.
func (s *Site) publish(e event.Event) {
	s.Job.mu.Lock()
	h := s.Here.Host // none yet, or no more, while this process joins the job
	s.Job.mu.Unlock()
	if h.Shared() {
		s.Here.appendLog(h, e)
		s.Scan()
		return
	}
	s.Job.Order.Lock()
	defer s.Job.Order.Unlock()
	s.handle(&e)
}

// Scan reads what other processes have added to the host's log.
func (s *Site) Scan() {
	s.Job.mu.Lock()
	h := s.Here.Host
	s.Job.mu.Unlock()
	if !h.Shared() || boardOf(h).log.Claimed() == s.Here.log.scanned.Load() {
		return
	}
	s.Job.Order.Lock()
	defer s.Job.Order.Unlock()
	next := s.Here.log.scanned.Load()
	boardOf(h).log.Unread(&next, s.Here.writesNoMore, func(e event.Event) {
		s.Here.showRead(next)
		s.handle(&e)
	})
	s.Here.showRead(next)
}

// handle does what this process has to do about an event, in the order of its host. Job.Order is held.
func (s *Site) handle(e *event.Event) {
	if call.Code(e.Code) == event.Voted {
		s.countVote(e, nil)
		s.decide()
		return
	}
	on, first := s.flood.Event(e, nil)
	if !first || s.isStale(e) {
		s.decide()
		return
	}
	s.Job.Time.Coarse.WakeMonitor()
	s.Job.undecided.Remember(e)
	on.To(s.near.neighbors())
	switch {
	case call.Code(e.Code) == event.AskLeft:
		s.answerLeft(int(e.Peer))
	case e.Stage != event.Proposed:
		s.deliver(e)
	case e.Size > 0:
		s.sendTally(e)
	case e.Comm == 0 && call.Code(e.Code) == call.RankLost:
		s.Job.markFailed(int(e.Peer))
	}
	s.decide()
}

// decide gives the proposals their places, if this process is the one to do that.
func (s *Site) decide() {
	for {
		if s.Job.undecided.Prune() == 0 || !s.Here.leads() || !s.Here.lowest() {
			return
		}
		d, ok := s.Job.undecided.Next(s.Job.Time.Lived.Brief())
		if !ok {
			return
		}
		if h := s.Here.Host; h.Shared() {
			s.Here.appendLog(h, d) // the scan that is under way comes to it
		} else {
			s.handle(&d)
		}
	}
}

// lowest reports whether no host before this one has a lead.
func (s *host) lowest() bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.lowest(s.Node)
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
		return s.Job.World.dead[int(e.Peer)]
	case len(s.Job.comms[e.Comm]) == 0: // of ranks elsewhere: see neverSplit
		return s.Job.undecided.IsDecided(e)
	}
	for _, c := range s.Job.comms[e.Comm] {
		if c.Fate.cause.Load() == nil {
			return false
		}
	}
	return true
}

// deliver tells the Comms of this process what e says. Job.Order is held.
func (s *Site) deliver(e *event.Event) {
	if w := int(e.Peer); call.Code(e.Code) > call.Closed {
		switch {
		case w < 0 || w >= s.Job.World.Topo.Size():
		case call.Code(e.Code) == event.ProcessLeft && s.Job.World.Topo.Node(w) != s.Here.Node: // whose own host says more
			s.Job.markLeft(s.Job.World.Topo.Node(w), s.Here.alongWith(w))
		case call.Code(e.Code) == event.RankLeft:
			s.Job.markLeft(s.Job.World.Topo.Node(w), []int{w})
		case call.Code(e.Code) == event.NewLead:
			s.Job.mu.Lock()
			s.Job.World.occupy(s.Job.World.Topo.Node(w))
			s.Job.mu.Unlock()
		case call.Code(e.Code) == event.HostClosed:
			s.Job.markClosed(hostClosed{e.Comm, w})
		}
		return
	}
	s.Job.mu.Lock()
	if e.Comm == 0 && call.Code(e.Code) == call.RankLost {
		if e.Loss != event.Certain && mayBeOut(s, int(e.Peer)) {
			s.Job.World.doubted[int(e.Peer)] = true
		}
		s.Job.World.lose(int(e.Peer), e.Loss == event.Certain)
		s.Here.noteOut(int(e.Peer))
	}
	if s.Job.broken.at == 0 && alarming(call.Code(e.Code)) {
		s.Job.broken = broken{at: max(s.Job.Clock(), 1), code: call.Code(e.Code)}
		apart := e.Comm == 0 && call.Code(e.Code) == call.RankLost && s.Job.World.reportsApart(int(e.Peer))
		for _, c := range s.Job.comms.members(nil) { // all ranks say where they stand
			if apart {
				c.Standing.reports.Store(true)
			} else {
				c.Standing.asked.Store(true)
			}
		}
	}
	var all []*Member
	if e.Comm != 0 {
		all = append(all, s.Job.comms[e.Comm]...)
	} else {
		all = s.Job.comms.members(all)
	}
	s.Job.mu.Unlock()
	for _, c := range all {
		s.Job.failMember(c, e)
	}
	if e.Comm == 0 && call.Code(e.Code) == call.RankLost {
		s.Job.markFailed(int(e.Peer))
	}
}

// failMember fails c with e, if e concerns c.
func (j *Job) failMember(c *Member, e *event.Event) {
	if e.Comm == c.Group.ID() {
		f := e.Fault(c.Group.Rank(), c.Share.contradicts)
		if own := c.Fate.proposal.Load(); own != nil && int(e.From) == c.Group.Rank() && uint8(own.Code) == e.Code {
			f.Own, f.Err = own.Own, own.Err // which the event has as text; all else is what all ranks are told
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

// HasLeft reports whether rank r has closed the Comm, as far as is known: of another host once all its ranks have.
func (c *Share) HasLeft(r int) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.group.Topology().Node(r) != c.group.Topology().Node(c.group.Rank()) {
		return slices.Contains(c.closed, c.group.Topology().Node(r))
	}
	return c.gone || c.Local.State(c.group.Topology().Local(r)).Load() == region.StateClosed
}

// isStale reports whether e comes from a process that is lost itself by now. A process that was
// stopped, and goes on after the others have given it up, blames the others for the end of its
// connections: nobody may believe that. A lost rank may report its own loss. It cannot change a
// decision.
func (s *Site) isStale(e *event.Event) bool {
	w := int(e.Origin)
	if e.Stage == event.Decided || call.Code(e.Code) > call.Closed && call.Code(e.Code) != event.NewLead ||
		w == int(e.Peer) {
		return false
	}
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.dead[w]
}

// CatchUp reads what the others of the host have said: in the log, and in this process's pulse what
// they believe of its ranks, where the log has gone on without it.
func CatchUp(s *Site) {
	s.Scan()
	s.Job.mu.Lock()
	out := s.Here.isOutside()
	s.Job.mu.Unlock()
	if out {
		believeOut(s)
	}
}

// isGivenUp reports whether the others have given this process up.
func (s *Site) isGivenUp() bool {
	CatchUp(s)
	return s.Job.IsLost(s.Here.Mine)
}

// Lost reports that rank w of the world is gone. With errEnded itself as the cause that is certain.
func (s *Site) Lost(w int, cause error) {
	e := event.New(0, call.RankLost, w, -1, s.Here.Node, cause)
	switch {
	case cause == errEnded:
		e.Loss = event.Certain
	case errors.Is(cause, errEnded):
		e.Loss = event.Ended
	}
	s.Post(e)
}

// LostOf notes in lost which ranks of g are lost, and returns how many of the job's are.
func (j *Job) LostOf(g *group.Group, lost []bool) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range lost {
		lost[r] = j.World.dead[g.World(r)]
	}
	return len(j.World.dead)
}

// Losses is how many ranks of the job are known to be lost.
func (j *Job) Losses() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.World.dead)
}

// HasEnded reports whether rank w of the world is lost and its end is certain.
func (j *Job) HasEnded(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.ended[w]
}

// IsLost reports whether rank w of the world is known to be lost.
func (j *Job) IsLost(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.dead[w]
}

// answerLeft says whether a rank of this host has left in good order, if it has.
func (s *Site) answerLeft(w int) {
	if w < 0 || w >= s.Job.World.Topo.Size() || !s.Here.leads() || s.Job.World.Topo.Node(w) != s.Here.Node {
		return
	}
	s.Job.mu.Lock()
	p := s.Here.Procs[s.Job.World.Topo.Local(w)]
	left := s.Job.World.leavers[w] || s.Here.processes.pulses != nil &&
		s.Here.processes.pulses[s.Job.World.Topo.Local(p)].left.Load() != 0
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

// LeftInOrder asks the host of rank w of the world whether w's process has left in good
// order. It may take a moment.
func (s *Site) LeftInOrder(w int) bool {
	await(s.Job, asked*tick, s.leftYet(w))
	return s.KnownLeft(w)
}

// EndedYet is the question whether the process of rank w of the world is known to have ended, in
// good order or not: then it will not listen again. Any goroutine may ask.
func (s *Site) EndedYet(w int) func() bool {
	left := s.leftYet(w)
	return func() bool {
		if !s.Job.TryHold() { // this process has left: who asks does so in vain
			return true
		}
		defer s.Job.Leave()
		return left() || s.Job.IsLost(w)
	}
}

// askAgain is after how long the host of a rank is asked once more, in time lived: while no process
// leads that host, a question is lost.
const askAgain = time.Second

// leftYet is the question whether the process of rank w of the world is known to have left in good
// order. Who asks it for the first time asks w's host, too, and again later; the answer takes a
// moment.
func (s *Site) leftYet(w int) func() bool {
	asked, again := false, time.Duration(0)
	return func() bool {
		s.Scan()
		if s.KnownLeft(w) {
			return true
		}
		if now := s.Job.Time.Lived.Now(); !asked || now >= again {
			asked, again = true, now+askAgain
			s.Post(event.New(0, event.AskLeft, w, -1, s.Here.Node, nil))
		}
		return false
	}
}

// KnownLeft reports whether this process knows that rank w's has left in good order.
func (s *Site) KnownLeft(w int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.hasLeft(w)
}
