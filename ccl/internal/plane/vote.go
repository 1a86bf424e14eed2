package plane

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Who is odd. A mismatch has two sides, and the first to see it may be on the wrong one: a rank that has left a call
// out often comes first. So, before a mismatch is believed, the ranks that have made the collective in dispute are
// counted, and it is told as that of a rank on a smaller side with one on the largest. The ranks of one host are counted
// in its memory by who reports it. Where a Comm spans hosts, each of them tells how many of its ranks are on which side,
// up the tree of the control plane, and who decides (settle.go) counts. Both go on as soon as ranks that have
// not come yet can change nothing, and for a moment at most.

const (
	holdHere = 5 * time.Millisecond  // for the ranks of a host to come to the collective in dispute
	holdFar  = 40 * time.Millisecond // for those of several hosts
	pollsMax = shm.RingSlots
)

// party is those ranks of a Comm that have made the same collective of some number.
type party struct {
	call call.Record
	rank int32 // the lowest of them
	n    int
}

// parties are all that are known to have made that collective.
type parties []party

func (p *parties) add(q party) {
	i := slices.IndexFunc(*p, func(o party) bool { return o.call.Hash == q.call.Hash })
	if i < 0 {
		*p = append(*p, q)
		return
	}
	o := &(*p)[i]
	o.n += q.n
	if q.rank < o.rank {
		o.rank, o.call = q.rank, q.call
	}
}

// largest is the largest of them, nil if two are; sure says that the ranks of size that are still to come can
// change nothing.
func (p parties) largest(size int) (most *party, sure bool) {
	first, second, all := -1, 0, 0
	for i := range p {
		all += p[i].n
		switch {
		case first < 0 || p[i].n > p[first].n:
			if first >= 0 {
				second = p[first].n
			}
			first = i
		case p[i].n > second:
			second = p[i].n
		}
	}
	if first < 0 || p[first].n == second {
		return nil, all >= size
	}
	return &p[first], p[first].n-second > size-all || all >= size
}

// blameMinority makes Peer of a mismatch a rank that differs from the most, and From one of the most, as far as is known who
// those are.
func (e *Event) blameMinority(p parties, size int) {
	most, _ := p.largest(size)
	switch {
	case most == nil:
	case e.Call.Hash != most.call.Hash: // it is the one that reports it who is odd
		if e.Theirs.Seq == e.Call.Seq && e.Theirs.Hash == most.call.Hash {
			e.From, e.Peer, e.Call, e.Theirs = e.Peer, e.From, e.Theirs, e.Call
		} else {
			e.From, e.Peer, e.Call, e.Theirs = most.rank, e.From, most.call, e.Call
		}
	case e.Theirs.Seq != e.Call.Seq: // what the other has made in its place is not known
		for _, o := range p {
			if o.call.Hash != most.call.Hash {
				e.Peer, e.Theirs = o.rank, o.call
				return
			}
		}
	}
}

// isDisputed reports whether e is a mismatch that other ranks of the Comm can tell the sides of.
func (c *Member) isDisputed(e *Event) bool {
	return call.Code(e.Code) == call.Mismatch && e.Bytes == 0 && e.Call.Kind != 0 && !call.IsPairwise(e.Call.Kind) && c.Size() > 2
}

// dispute reports a mismatch when the sides are known.
func (c *Member) dispute(e Event) {
	if c.N < c.Size() {
		e.Size = int32(c.Size())
		c.Site.Post(e)
		return
	}
	settled := func() bool {
		p := c.parties(e.Call.Seq)
		if _, sure := p.largest(c.N); !sure {
			return false
		}
		e.blameMinority(p, c.N)
		c.Site.Post(e)
		return true
	}
	if settled() {
		return
	}
	c.Site.Hold()
	go func() {
		defer c.Site.Leave()
		for over := c.Site.deadline(holdHere); !over(); {
			time.Sleep(napMax)
			if c.Cause.Load() != nil || settled() {
				return
			}
		}
		e.blameMinority(c.parties(e.Call.Seq), c.N)
		c.Site.Post(e)
	}()
}

// parties counts the ranks of this host that have made collective seq.
func (c *Member) parties(seq uint64) (p parties) {
	c.Life.Lock()
	defer c.Life.Unlock()
	if c.Gone {
		return nil
	}
	for r := range c.N {
		if rec, ok := c.Local.Made(r, seq); ok {
			p.add(party{rec, int32(c.LocalRank(r)), 1})
		}
	}
	return p
}

// poll is what the process that decides has heard of a collective in dispute.
type poll struct {
	subject
	seq   uint64
	until time.Duration // in lived time
	votes []vote
}

// vote is how many ranks of a host are of a party.
type vote struct {
	party
	node int32
}

// add takes in what a host tells. It tells more when more of its ranks have come.
func (p *poll) add(v vote) {
	for i := range p.votes {
		if o := &p.votes[i]; o.node == v.node && o.call.Hash == v.call.Hash {
			o.n = max(o.n, v.n)
			return
		}
	}
	p.votes = append(p.votes, v)
}

func (p *poll) parties() (all parties) {
	for _, v := range p.votes {
		all.add(v.party)
	}
	return all
}

// poll is that about collective seq of e's Comm. j.mu is held.
func (j *job) poll(e *Event) *poll {
	for _, p := range j.polls {
		if p.subject == e.subject() && p.seq == e.Call.Seq {
			return p
		}
	}
	if len(j.polls) == pollsMax {
		j.polls = j.polls[1:]
	}
	p := &poll{subject: e.subject(), seq: e.Call.Seq, until: j.Lived.Now() + holdFar}
	j.polls = append(j.polls, p)
	return p
}

// canDecide reports whether a proposal can be decided. j.mu is held.
func (j *job) canDecide(e *Event) bool {
	if e.Size == 0 {
		return true
	}
	p := j.poll(e)
	_, sure := p.parties().largest(int(e.Size))
	return sure || j.Lived.Now() >= p.until
}

// sendTally has this host tell which of its ranks are on which side of e, once.
func (s *Site) sendTally(e *Event) {
	seq := e.Call.Seq
	s.mu.Lock()
	var first *Member
	for _, c := range s.comms[e.Comm] {
		if c.Site == s && c.Me == 0 && !slices.Contains(c.voted, seq) {
			c.voted = append(c.voted, seq)
			first = c
		}
	}
	s.mu.Unlock()
	if first == nil || !s.tryHold() {
		return
	}
	go func() { // not within the order of what is being handled
		defer s.Leave()
		first.sendVotes(seq)
	}()
}

// sendVotes tells who has made collective seq, until all ranks of this host have.
func (c *Member) sendVotes(seq uint64) {
	sent := map[uint32]int{}
	for over := c.Site.deadline(holdFar); c.Cause.Load() == nil && !c.Closed.Load(); time.Sleep(napMax) {
		all := 0
		for _, p := range c.parties(seq) {
			if all += p.n; sent[p.call.Hash] == p.n {
				continue
			}
			sent[p.call.Hash] = p.n
			e := NewEvent(c.id, voted, p.n, int(p.rank), c.Site.Node, nil)
			e.Call = p.call
			c.Site.Post(e)
		}
		if all == c.N || over() {
			return
		}
	}
}

// countVote counts a vote, and sends it on to those nearer to the host that decides.
func (s *Site) countVote(e *Event, from *controlConn) {
	s.mu.Lock()
	if s.settled.has(e.subject()) || e.Peer <= 0 || !s.isFirst(e) {
		s.mu.Unlock()
		return
	}
	s.poll(e).add(vote{party{e.Call, e.From, int(e.Peer)}, e.Node})
	s.mu.Unlock()
	broken := s.isBroken()
	for _, c := range s.neighbors() {
		if c != from && (broken || c.host < s.Node && c.inTree(s.Node)) {
			c.send(frameEvent, e)
		}
	}
}

// reconsider decides what has become ripe.
func (s *Site) reconsider() {
	s.mu.Lock()
	none := len(s.pending) == 0
	s.mu.Unlock()
	if none {
		return
	}
	s.Order.Lock()
	s.decide()
	s.Order.Unlock()
	s.Scan()
}
