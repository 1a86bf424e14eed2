package gone

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/test/model/explore"
)

// settling is how hosts of one rank each settle on the cause of a Comm's failure, in every order in which they can hear of
// it. What decides is State; what is modeled is the network, and what a process does about Effects. Hosts may end, which
// others hear by the end of their connections, and connections may break, which each of their ends takes for the loss of the
// other. A proposal that nobody decides is believed by its own host, but only when nothing else is under way: the engine
// waits for 150 ms.
//
// One cause is promised while the hosts can reach each other. So if only hosts end, all that are left believe the same, and
// nobody who lives is taken for lost. If a connection breaks between two that live, which is a partition as far as those two
// can see, all that are left have heard of a failure.
type settling struct {
	n         int
	proposers int // hosts that find a cause of their own
	crashes   int
	breaks    int

	// Planted errors.
	eager  bool // a host believes its own proposal at once
	usurps bool // each host decides what it hears of
}

var _ explore.System[*settleState] = (*settling)(nil)

// hostsMost is the most hosts that are explored.
const hostsMost = 4

// settleState is all there is at a moment. What a State, a mailbox or a list of proposals holds is replaced, never changed.
type settleState struct {
	ended     uint8
	cut       [hostsMost]uint8 // connections that are no more, as each host knows
	broken    [hostsMost]uint8 // and as they are
	state     [hostsMost]*State
	cause     [hostsMost]int           // of the Comm's failure, as each believes: 1 + the event's number | its origin << 8
	own       [hostsMost][]event.Event // what each has proposed, and nobody decided
	passed    [hostsMost]uint64        // events that each has passed on: see bit
	mail      [hostsMost][hostsMost][]event.Event
	found     uint8 // hosts that have found a cause
	proposals uint8
	crashes   uint8
	breaks    uint8
}

func has(set uint8, h int) bool { return set>>h&1 != 0 }

func (m *settling) Start() *settleState {
	s := &settleState{}
	for h := range m.n {
		s.state[h] = &State{Ranks: Ranks{Topo: algo.Blocks(m.n, 1)}}
	}
	return s
}

// bit is the place of e in a set of all events.
func bit(e *event.Event) uint64 {
	return 1 << ((int(e.Stage)*hostsMost+int(e.Origin))*(hostsMost+1) + int(e.Number))
}

// post has host h find out what e says.
func (m *settling) post(s *settleState, h int, e event.Event) {
	e.Origin = int32(h)
	t := s.state[h].Clone()
	s.state[h] = t
	way := t.Post(&e)
	if way == Dropped {
		return
	}
	s.own[h] = append(slices.Clone(s.own[h]), e)
	if m.eager && s.cause[h] == 0 {
		s.cause[h] = causeOf(&e)
	}
	if way == Told {
		m.publish(s, h, e)
	}
}

func causeOf(e *event.Event) int { return int(e.Origin)<<8 + int(e.Number) + 1 }

// publish has host h take an event in, once, do what follows from it, and decide what it may.
func (m *settling) publish(s *settleState, h int, e event.Event) {
	if s.passed[h]&bit(&e) == 0 {
		s.passed[h] |= bit(&e)
		t := s.state[h].Clone()
		s.state[h] = t
		do := t.Hear(&e, Seen{Host: h})
		if do.Pass {
			for o := range m.n {
				if o != h && !has(s.cut[h]|s.broken[h], o) && !has(s.ended, o) {
					s.mail[h][o] = append(slices.Clone(s.mail[h][o]), e)
				}
			}
		}
		if do.Believe && s.cause[h] == 0 { // the loss of a host is a cause, too: the Comm has its ranks
			s.cause[h] = causeOf(&e)
		}
	}
	m.decide(s, h)
}

func (m *settling) decide(s *settleState, h int) {
	for {
		t := s.state[h].Clone()
		d, ok := t.Decide(0, h, func(w int) bool { return w == h })
		if m.usurps && !ok && t.Events.Prune() > 0 {
			d, ok = t.Events.Next(0)
		}
		if s.state[h] = t; !ok {
			return
		}
		m.publish(s, h, d)
	}
}

// loses has host h find the end of its connection with o.
func (m *settling) loses(s *settleState, h, o int) {
	s.cut[h] |= 1 << o
	s.mail[o][h] = nil
	e := event.New(0, call.RankLost, o, -1, h, nil)
	e.Number = uint64(1 + o)
	m.post(s, h, e)
}

func (m *settling) Steps(s *settleState, all []explore.Step[*settleState]) []explore.Step[*settleState] {
	do := func(fault bool, text string, a, b int) *settleState { return explore.Done(s, &all, fault, text, a, b) }
	for h := range m.n {
		if has(s.ended, h) {
			continue
		}
		for o := range m.n {
			if o == h || has(s.cut[h], o) {
				continue
			}
			if box := s.mail[o][h]; len(box) > 0 {
				t := do(false, "host %d hears from host %d: %s", h, o)
				all[len(all)-1].What.More = name(&box[0])
				t.mail[o][h] = box[1:]
				m.publish(t, h, box[0])
			} else if has(s.broken[h], o) || has(s.ended, o) {
				m.loses(do(false, "host %d finds the end of its connection with host %d", h, o), h, o)
			}
			if o > h && s.breaks < uint8(m.breaks) && !has(s.broken[h]|s.cut[o], o) && !has(s.ended, o) {
				t := do(true, "the connection of hosts %d and %d breaks", h, o)
				t.breaks++
				t.broken[h] |= 1 << o
				t.broken[o] |= 1 << h
				t.mail[h][o], t.mail[o][h] = nil, nil
			}
		}
		if s.proposals < uint8(m.proposers) && s.cause[h] == 0 && !has(s.found, h) {
			t := do(true, "host %d finds a cause", h, 0)
			t.proposals++
			t.found |= 1 << h
			m.post(t, h, event.New(1, call.Aborted, h, h, h, errors.New("on purpose")))
		}
		if s.crashes < uint8(m.crashes) {
			t := do(true, "host %d ends", h, 0)
			t.crashes++
			t.ended |= 1 << h
			for o := range m.n {
				t.mail[o][h] = nil
			}
		}
	}
	for _, x := range all {
		if !x.Fault {
			return all
		}
	}
	// Nothing is under way: proposals that nobody has decided are believed.
	for h := range m.n {
		for i, e := range s.own[h] {
			if has(s.ended, h) || e.Comm == 0 && s.state[h].Of(int(e.Peer)).Lost || e.Comm != 0 && s.cause[h] != 0 {
				continue // it is moot
			}
			t := do(false, "host %d believes what nobody has decided: %s", h, 0)
			all[len(all)-1].What = explore.Deed{Text: "host %d believes what nobody has decided", A: int8(h)}
			t.own[h] = slices.Delete(slices.Clone(s.own[h]), i, i+1)
			e.Stage = event.Final
			m.publish(t, h, e)
		}
	}
	return all
}

func name(e *event.Event) string {
	what := [...]string{event.Final: "believed", event.Proposed: "proposed", event.Decided: "decided"}[e.Stage]
	if e.Comm == 0 {
		return fmt.Sprintf("%s, that host %d is lost", what, e.Peer)
	}
	return fmt.Sprintf("%s, the cause of host %d", what, e.From)
}

func (m *settling) Check(s *settleState, end bool) error {
	if !end {
		return nil
	}
	lost := func(h, o int) bool { return s.state[h].Of(o).Lost }
	for h := range m.n {
		if has(s.ended, h) || lost(h, h) {
			continue
		}
		for o := range m.n {
			switch {
			case has(s.ended, o) && !lost(h, o):
				return fmt.Errorf("host %d has never heard that host %d has ended", h, o)
			case lost(h, o) && !has(s.ended, o) && s.breaks == 0:
				return fmt.Errorf("host %d believes that host %d is lost, which lives", h, o)
			case o == h || has(s.ended, o) || lost(o, o) || lost(h, o):
			case (s.cause[h] == 0) != (s.cause[o] == 0):
				return fmt.Errorf("hosts %d and %d are both there, and one has heard of no failure: %d, %d", h, o, s.cause[h],
					s.cause[o])
			case s.cause[h] != s.cause[o] && s.breaks == 0:
				return fmt.Errorf("hosts %d and %d are both there, and believe different causes: %d, %d", h, o, s.cause[h],
					s.cause[o])
			}
		}
	}
	return nil
}

func (m *settling) Key(s *settleState, b []byte) []byte {
	b = append(b, s.ended, s.proposals, s.crashes, s.breaks, s.found)
	for h := range m.n {
		if has(s.ended, h) {
			b = append(b, '-')
		} else {
			b = append(b, s.cut[h], s.broken[h], byte(s.cause[h]), byte(s.cause[h]>>8))
			b = s.state[h].Append(b)
			for i := range s.own[h] {
				b = s.own[h][i].AppendName(b)
			}
		}
		for o := range m.n {
			b = append(b, '>')
			for i := range s.mail[h][o] {
				b = s.mail[h][o][i].AppendName(b)
			}
		}
	}
	return b
}

func TestModel(t *testing.T) {
	explore.Sound(t, &settling{n: 3, proposers: 2, crashes: 1})
	explore.Sound(t, &settling{n: 3, proposers: 1, breaks: 1})
	if testing.Short() {
		return
	}
	explore.Sound(t, &settling{n: 3, proposers: 2, crashes: 2})
}

func TestModelFindsWhatIsPlanted(t *testing.T) {
	t.Run("a host believes its own proposal at once", func(t *testing.T) {
		explore.Finds(t, &settling{n: 3, proposers: 2, eager: true}, "believe different causes", 30)
	})
	t.Run("each host decides", func(t *testing.T) {
		explore.Finds(t, &settling{n: 3, proposers: 2, usurps: true}, "believe different causes", 30)
	})
}
