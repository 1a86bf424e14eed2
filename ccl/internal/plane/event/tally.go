package event

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Party is those ranks of a Comm that have made the same collective of some number.
type Party struct {
	Call call.Record
	Rank int32 // the lowest of them
	N    int
}

// Parties are all that are known to have made that collective.
type Parties []Party

// Add takes in q, which may be of a party that is there.
func (p *Parties) Add(q Party) {
	i := slices.IndexFunc(*p, func(o Party) bool { return o.Call.Hash == q.Call.Hash })
	if i < 0 {
		*p = append(*p, q)
		return
	}
	o := &(*p)[i]
	o.N += q.N
	if q.Rank < o.Rank {
		o.Rank, o.Call = q.Rank, q.Call
	}
}

// Largest is the largest of them, nil if two are; sure says that the ranks of size that are still to come can
// change nothing.
func (p Parties) Largest(size int) (most *Party, sure bool) {
	first, second, all := -1, 0, 0
	for i := range p {
		all += p[i].N
		switch {
		case first < 0 || p[i].N > p[first].N:
			if first >= 0 {
				second = p[first].N
			}
			first = i
		case p[i].N > second:
			second = p[i].N
		}
	}
	if first < 0 || p[first].N == second {
		return nil, all >= size
	}
	return &p[first], p[first].N-second > size-all || all >= size
}

// BlameMinority makes Peer of a mismatch a rank that differs from the most, and From one of the
// most, as far as is known who those are.
func (e *Event) BlameMinority(p Parties, size int) {
	most, _ := p.Largest(size)
	switch {
	case most == nil:
	case e.Call.Hash != most.Call.Hash: // it is the one that reports it who is odd
		if e.Theirs.Place == e.Call.Place && e.Theirs.Hash == most.Call.Hash {
			e.From, e.Peer, e.Call, e.Theirs = e.Peer, e.From, e.Theirs, e.Call
		} else {
			e.From, e.Peer, e.Call, e.Theirs = most.Rank, e.From, most.Call, e.Call
		}
	case e.Theirs.Place != e.Call.Place: // what the other has made in its place is not known
		for _, o := range p {
			if o.Call.Hash != most.Call.Hash {
				e.Peer, e.Theirs = o.Rank, o.Call
				return
			}
		}
	}
}

// IsDisputed reports whether e is a mismatch that other ranks of the Comm, of that size, can tell the sides of.
func (e *Event) IsDisputed(size int) bool {
	return call.Code(e.Code) == call.Mismatch && e.Bytes == 0 && e.Call.Kind != 0 && !e.Call.Kind.Pairwise() && size > 2
}

// poll is what the process that decides knows of a collective in dispute.
type poll struct {
	subject
	place    uint64
	since    time.Duration // in lived time
	votes    []vote
	answers  map[int32]bool // hosts that have answered
	answered int            // and the ranks of the Comm there
}

// vote is how many ranks of a host are of a party. A host none of whose ranks has come says that, with a vote of none.
type vote struct {
	Party
	node int32
}

// add takes in a vote. A host votes again when more of its ranks have come. ranks is how many of
// the Comm it has, in the last vote of its first answer, and else 0.
func (p *poll) add(v vote, ranks int) {
	if ranks > 0 && !p.answers[v.node] { // which may come again
		if p.answers == nil {
			p.answers = map[int32]bool{}
		}
		p.answers[v.node] = true
		p.answered += ranks
	}
	for i := range p.votes {
		if o := &p.votes[i]; o.node == v.node && o.Call.Hash == v.Call.Hash {
			o.N = max(o.N, v.N)
			return
		}
	}
	p.votes = append(p.votes, v)
}

func (p *poll) parties() (all Parties) {
	for _, v := range p.votes {
		if v.N > 0 {
			all.Add(v.Party)
		}
	}
	return all
}
