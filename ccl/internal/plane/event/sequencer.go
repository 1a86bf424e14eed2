package event

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// How long the process that decides waits, where a Comm spans hosts, for what they say of a collective in dispute.
const (
	HoldFar = 40 * time.Millisecond // for ranks to come to it
	// for each host to say which of its ranks have; less than a proposal waits for its decision
	HoldMost = 100 * time.Millisecond
	pollsMax = shm.RingSlots
)

// Sequencer puts proposals in order: it keeps those that nobody has decided yet, and what has been
// decided. Each process has a Sequencer, so that any process can take over from the process that
// decides. Its owner guards it.
type Sequencer struct {
	history []Event // the last failures, for Comms and connections that are about to be made
	pending []Event // proposals that nobody has decided yet
	polls   []*poll // about those that are counted first
	decided decisions
}

// Remember keeps e for those that come later: a proposal until it is decided, here or elsewhere.
func (q *Sequencer) Remember(e *Event) {
	if call.Code(e.Code) > ProcessLeft {
		return
	}
	list := &q.history
	switch {
	case e.Stage == Proposed && q.decided.has(e.subject()):
		return
	case e.Stage == Proposed:
		list = &q.pending
	case call.Code(e.Code) <= call.Closed:
		q.decided.keep(e.subject())
	}
	if len(*list) == shm.RingSlots {
		*list = (*list)[1:]
	}
	*list = append(*list, *e)
}

// History lists the last events that were not proposals.
func (q *Sequencer) History() []Event {
	return slices.Clone(q.history)
}

// All lists them, and the proposals that nobody has decided yet.
func (q *Sequencer) All() []Event {
	return slices.Concat(q.history, q.pending)
}

// IsDecided reports whether the subject of e is decided.
func (q *Sequencer) IsDecided(e *Event) bool {
	return q.decided.has(e.subject())
}

// Alike lists the proposals that say of a loss what e does.
func (q *Sequencer) Alike(e *Event) (list []Event) {
	for _, o := range q.pending {
		if o.Code == e.Code && o.Comm == e.Comm && o.Peer == e.Peer && o.Loss >= e.Loss {
			list = append(list, o)
		}
	}
	return list
}

// Any reports whether there are proposals that nobody has decided.
func (q *Sequencer) Any() bool {
	return len(q.pending) > 0
}

// IsIdle reports whether there are neither proposals nor votes.
func (q *Sequencer) IsIdle() bool {
	return len(q.pending)+len(q.polls) == 0
}

// Prune drops what has been decided, and returns how many proposals are left.
func (q *Sequencer) Prune() int {
	q.pending = slices.DeleteFunc(q.pending, func(e Event) bool { return q.decided.has(e.subject()) })
	q.polls = slices.DeleteFunc(q.polls, func(p *poll) bool { return q.decided.has(p.subject) })
	return len(q.pending)
}

// Next decides the first proposal that can be. now is in lived time, as of Lived.Brief.
func (q *Sequencer) Next(now time.Duration) (d Event, ok bool) {
	next := slices.IndexFunc(q.pending, func(e Event) bool { return q.canDecide(&e, now) })
	if next < 0 {
		return d, false
	}
	d = q.pending[next]
	if d.Size > 0 {
		d.BlameMinority(q.poll(&d, now).parties(), int(d.Size))
	}
	q.pending = slices.Delete(q.pending, next, next+1)
	q.decided.keep(d.subject())
	d.Stage = Decided
	return d, true
}

// Vote counts what a host says of the sides of a dispute.
func (q *Sequencer) Vote(e *Event, now time.Duration) {
	q.poll(e, now).add(vote{Party{e.Call, e.From, int(e.Peer)}, e.Node}, int(e.Size))
}

// poll is that about the collective of e.
func (q *Sequencer) poll(e *Event, now time.Duration) *poll {
	for _, p := range q.polls {
		if p.subject == e.subject() && p.place == e.Call.Place {
			return p
		}
	}
	if len(q.polls) == pollsMax {
		q.polls = q.polls[1:]
	}
	p := &poll{subject: e.subject(), place: e.Call.Place, since: now}
	q.polls = append(q.polls, p)
	return p
}

// canDecide reports whether a proposal can be decided.
func (q *Sequencer) canDecide(e *Event, now time.Duration) bool {
	if e.Size == 0 {
		return true
	}
	p := q.poll(e, now)
	_, sure := p.parties().Largest(int(e.Size))
	return sure || now >= p.since+HoldMost || now >= p.since+HoldFar && p.answered >= int(e.Size)
}

// Clone returns a Sequencer that goes on by itself, for a checker that explores what may happen.
func (q *Sequencer) Clone() Sequencer {
	r := Sequencer{slices.Clone(q.history), slices.Clone(q.pending), slices.Clone(q.polls), q.decided}
	for i, p := range r.polls {
		o := *p
		o.votes, o.answers = slices.Clone(p.votes), maps.Clone(p.answers)
		r.polls[i] = &o
	}
	r.decided.all, r.decided.list = maps.Clone(q.decided.all), slices.Clone(q.decided.list)
	return r
}

// AppendName appends what tells e from all other events: its origin, its number and its stage.
func (e *Event) AppendName(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Origin))
	return append(binary.LittleEndian.AppendUint64(b, e.Number), byte(e.Stage))
}

// Append appends what tells q's proposals and decisions from others. Votes are not in it.
func (q *Sequencer) Append(b []byte) []byte {
	for _, list := range [][]Event{q.history, q.pending} {
		b = append(b, byte(len(list)))
		for i := range list {
			b = list[i].AppendName(b)
		}
	}
	return b
}
