package plane

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// Who is odd. A mismatch has two sides, and the first to see it may be on the wrong one: a rank
// that has left a call out often comes first. So, before a mismatch is believed, the ranks that
// have made the collective in dispute are counted, and it is told as that of a rank on a smaller
// side with one on the largest. The ranks of one host are counted in its memory by who reports it.
// Where a Comm spans hosts, each of them tells how many of its ranks are on which side, up the tree
// of the control plane, and the process that decides (settle.go) counts. Both go on as soon as
// ranks that have not come yet can change nothing, and wait for a moment at most; for a host that
// has not said yet which of its ranks have come, somewhat longer.

const holdHere = 5 * time.Millisecond // for the ranks of a host to come to the collective in dispute

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

// sendVotes tells who has made the collective of that place, until all ranks of this host have. The
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

// countVote counts a vote, and sends it on to those nearer to the host that decides.
func (s *Site) countVote(e *event.Event, from *control.Conn) {
	if e.Peer < 0 || s.Job.undecided.IsDecided(e) {
		return
	}
	on, first := s.flood.Event(e, from)
	if !first {
		return
	}
	s.Job.undecided.Vote(e, s.Job.Time.Lived.Brief())
	on.To(s.near.through(func(c *control.Conn) bool { return c.Host < s.Here.Node && c.InTree(s.Here.Node) }))
}

// reconsider decides what has become ripe.
func (s *Site) reconsider() {
	if !s.Job.undecided.Any() {
		return
	}
	s.Job.Order.Lock()
	s.decide()
	s.Job.Order.Unlock()
	s.Scan()
}
