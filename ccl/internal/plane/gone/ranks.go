package gone

import (
	"slices"

	"github.com/goccl/goccl/internal/algo"
)

// Rank is what a process knows of one rank of the world. The zero value is that the rank is there.
type Rank struct {
	Left     bool // it has left in good order
	Reported bool // it is reported lost, whether that is believed yet or not: it leads its host no more
	Lost     bool // it is believed to be lost
	Certain  bool // its process was seen to end, before anything else made it lost
	Doubted  bool // it is lost, and may have given this process up before and gone on
}

// isAway reports whether the rank has left or is lost.
func (r Rank) isAway() bool { return r.Left || r.Lost }

// Absence says why no process of a host is on the control plane.
type Absence uint8

const (
	Present Absence = iota // its lead is, or is not known to have gone
	Left                   // its lead has left in good order, and the next has not come
	Lost                   // its lead was lost, and the next has not come
)

// place is a host's place on the control plane.
type place struct {
	first int // which of its ranks leads it: the lowest that is there
	empty Absence
}

// Ranks is which ranks of the world have gone, and so which lead their hosts. Ranks and hosts of which nothing is known
// take no memory.
type Ranks struct {
	Topo   algo.Topology // set while the job begins
	Leaves bool          // this process leaves the job: leads stay as they are

	gone    map[int]Rank
	lost    int // how many are
	certain int // how many of these are certain
	hosts   map[int]place
}

// Of is what is known of rank w of the world.
func (s *Ranks) Of(w int) Rank { return s.gone[w] }

// set notes what is known of rank w of the world.
func (s *Ranks) set(w int, r Rank) {
	if s.gone == nil {
		s.gone = map[int]Rank{}
	}
	s.gone[w] = r
}

// IsRank reports whether the world has a rank w: what comes from another host may name any.
func (s *Ranks) IsRank(w int) bool { return w >= 0 && w < s.Topo.Size() }

// Losses is how many ranks are believed to be lost.
func (s *Ranks) Losses() int { return s.lost }

// AllCertain reports whether every loss is certain: there is no sign of a partition.
func (s *Ranks) AllCertain() bool { return s.lost == s.certain }

// Lead is the rank that leads host h, -1 if no rank of h is left.
func (s *Ranks) Lead(h int) int {
	l := s.hosts[h].first
	if l >= s.Topo.Locals(h) {
		return -1
	}
	return s.Topo.Rank(h, l)
}

// Absence says why host h has no process on the control plane, Present if it has one.
func (s *Ranks) Absence(h int) Absence { return s.hosts[h].empty }

// LeadHasGone reports whether the first lead of any host has gone: then the tree does not reach all.
func (s *Ranks) LeadHasGone() bool { return len(s.hosts) > 0 }

// IsAway reports whether rank w is known to have gone.
func (s *Ranks) IsAway(w int) bool { return s.gone[w].isAway() }

// HasLeft reports whether rank w has left in good order, as far as is known. If the lead of a host has left and
// no other has come, all of its ranks count as left. The lead stays until one has come, or all have gone, and
// says which of them die: until that is heard it is not certain of a rank whose connection ends, see
// plane.LeftYet.
func (s *Ranks) HasLeft(w int) bool {
	r := s.gone[w]
	return r.Left || !r.Lost && s.Absence(s.Topo.Node(w)) == Left
}

// Lose notes that rank w is lost. That is certain if its process was seen to end: the kernel's word
// of its death, the end of a local connection, a port that is refused where it listened. Otherwise
// it is suspected: it is silent or out of reach, and may live on the other side of a partition.
//
// The first word of a loss stands. A rank that was suspected first may have gone on with others,
// without this one, before it ended, so that its later end does not make it one that never did: see
// agree.Majority.
func (s *Ranks) Lose(w int, certain bool) {
	r := s.gone[w]
	if r.Lost {
		return
	}
	r.Lost, r.Certain = true, certain
	s.lost++
	if certain {
		s.certain++
	}
	s.set(w, r)
}

// Report notes that rank w is reported lost, and says whether its host has another lead now.
func (s *Ranks) Report(w int) (newLead bool) {
	r := s.gone[w]
	r.Reported = true
	s.set(w, r)
	return s.advance(s.Topo.Node(w), Lost)
}

// Leave notes that ranks of host h have left in good order, and says whether h has another lead now.
func (s *Ranks) Leave(h int, ranks []int) (newLead bool) {
	for _, w := range ranks {
		r := s.gone[w]
		r.Left = true
		s.set(w, r)
	}
	return s.advance(h, Left)
}

// advance finds the lead of host h, of which ranks have gone, and reports whether it is another now.
func (s *Ranks) advance(h int, why Absence) bool {
	if s.Topo.Nodes() == 1 || s.Leaves {
		return false
	}
	p := s.hosts[h]
	was := p.first
	for p.first < s.Topo.Locals(h) {
		if r := s.gone[s.Topo.Rank(h, p.first)]; !r.isAway() && !r.Reported {
			break
		}
		p.first++
	}
	if p.first == was {
		return false
	}
	p.empty = why
	s.setPlace(h, p)
	return true
}

func (s *Ranks) setPlace(h int, p place) {
	if s.hosts == nil {
		s.hosts = map[int]place{}
	}
	s.hosts[h] = p
}

// Occupy notes that the lead of host h is on the control plane.
func (s *Ranks) Occupy(h int) {
	if p, has := s.hosts[h]; has {
		p.empty = Present
		s.hosts[h] = p
	}
}

// Staying lists the ranks of host h that are not known to have gone.
func (s *Ranks) Staying(h int) (ranks []int) {
	for l := range s.Topo.Locals(h) {
		if w := s.Topo.Rank(h, l); !s.IsAway(w) {
			ranks = append(ranks, w)
		}
	}
	return ranks
}

// isLowest reports whether no host before h has a lead.
func (s *Ranks) isLowest(h int) bool {
	for i := range h {
		if s.Lead(i) >= 0 {
			return false
		}
	}
	return true
}

// LowestLeft is the lowest rank that is not known to have gone; if all have gone, the last.
func (s *Ranks) LowestLeft() int {
	last := s.Topo.Size() - 1
	for w := range last {
		if !s.IsAway(w) && !s.HasLeft(w) {
			return w
		}
	}
	return last
}

// ReportingHost is the host whose process reports where all ranks stood: that of the lowest rank left.
func (s *Ranks) ReportingHost() int { return s.Topo.Node(s.LowestLeft()) }

// ReportsApart reports whether the reporting host is another one than that of rank w, which is lost.
// If it is the same, its other ranks may be found to be lost in a moment, and with them the rank
// that reports.
func (s *Ranks) ReportsApart(w int) bool { return s.Topo.Node(w) != s.ReportingHost() }

// IsEnding reports whether those around host h, whose lead has gone, have just left in good order:
// the lead of host here, or, if nobody is left to ask, that of any other. A host that has lost a
// lead has lost others as well.
func (s *Ranks) IsEnding(h, here int, alone bool) bool {
	if s.Absence(h) == Lost {
		return false
	}
	for o, p := range s.hosts {
		if p.empty == Left && (o == here || alone) {
			return true
		}
	}
	return false
}

// Neighbors lists the hosts that host h has connections with: those of the tree, and, of those that
// are left, the nearest on the ring. The relation is symmetric, while all know which have gone.
func (s *Ranks) Neighbors(h int) []int {
	n := s.Topo.Nodes()
	var hosts []int
	add := func(o int) {
		if o != h && o < n && s.Lead(o) >= 0 && !slices.Contains(hosts, o) {
			hosts = append(hosts, o)
		}
	}
	if h > 0 {
		add((h - 1) / 2)
	}
	add(2*h + 1)
	add(2*h + 2)
	for _, step := range []int{1, n - 1} {
		for o, found := (h+step)%n, 0; o != h && found < ringReach; o = (o + step) % n {
			if s.Lead(o) >= 0 {
				add(o)
				found++
			}
		}
	}
	return hosts
}

// ringReach is how many hosts each has a connection to in either direction of the ring: as many,
// less one, may go at once without dividing the others.
const ringReach = 2

// SetLead makes the l-th rank of host h its lead, for a simulation or a test that knows no ranks; after the last
// rank the host has no lead.
func (s *Ranks) SetLead(h, l int, why Absence) { s.setPlace(h, place{l, why}) }
