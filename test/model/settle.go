package model

import (
	"encoding/binary"
	"fmt"
)

// settling is how hosts of one rank each settle on the cause of a Comm's failure: those that find
// one propose it to all; the lowest host that is not said to be gone puts proposals in order and
// tells all what it has decided; what is decided first is the cause. Hosts may end, which others
// hear by the end of their connections, and connections may break, which each of their ends takes
// for the loss of the other: that is proposed and decided in the same way, and nobody believes it
// of a host that is lost itself. A proposal that nobody decides is believed by its own host and
// told to the others, but only when nothing else is under way: the engine waits for 150 ms.
//
// One cause is promised while the hosts can reach each other. So where only hosts end, all that are
// left believe the same, and nobody who lives is taken for lost. Where a connection breaks between
// two that live, which is a partition as far as those two can see, all that are left have heard of
// a failure.
//
// This follows ccl/internal/plane/settle.go, and is not that code.
type settling struct {
	n         int
	proposers int // of causes of their own
	crashes   int
	breaks    int

	// Planted errors.
	eager bool // a host believes its own proposal at once
}

var _ system[*settleState] = (*settling)(nil)

// news is what goes from host to host. cause 1 to n is that of a host, for the Comm; n+1+h that host h is lost.
type news struct {
	cause   uint8
	from    uint8 // who proposed it
	decided bool
}

type settleState struct {
	ended     uint8
	cut       [ranksMax]uint8 // connections that are no more, as each host knows
	broken    [ranksMax]uint8 // and as they are
	lost      [ranksMax]uint8 // hosts that each believes to be lost
	fallen    [ranksMax]uint8 // or has heard are said to be
	cause     [ranksMax]uint8 // of the Comm's failure, as each believes
	pending   [ranksMax][]news
	settled   [ranksMax]uint16 // subjects: bit 0 the Comm, bit 1+h the loss of h
	own       [ranksMax]uint16 // causes that each has proposed
	passed    [ranksMax]uint64 // news that each has passed on: see bit
	mail      [ranksMax][ranksMax][]news
	proposals uint8
	crashes   uint8
	breaks    uint8
}

func (m *settling) start() *settleState { return &settleState{} }

// subject is what can be settled once.
func (m *settling) subject(cause uint8) int { return max(int(cause)-m.n, 0) }

func (m *settling) lossOf(h int) uint8 { return uint8(m.n + 1 + h) }

// bit is the place of e in a set of all news.
func (e news) bit() uint64 {
	b := int(e.cause-1)*ranksMax + int(e.from)
	if e.decided {
		b += 2 * ranksMax * ranksMax
	}
	return 1 << b
}

// publish has host h take news in, pass it on once, and decide what it may.
func (m *settling) publish(s *settleState, h int, e news) {
	isLoss := int(e.cause) > m.n
	if !e.decided && isLoss && has(s.lost[h], int(e.from)) && e.cause != m.lossOf(int(e.from)) {
		return
	}
	if s.passed[h]&e.bit() != 0 {
		return
	}
	s.passed[h] |= e.bit()
	for o := range m.n {
		if o != h && !has(s.cut[h]|s.broken[h], o) && !has(s.ended, o) {
			box := s.mail[h][o]
			s.mail[h][o] = append(box[:len(box):len(box)], e)
		}
	}
	switch {
	case e.decided:
		m.believe(s, h, e.cause)
	case s.settled[h]>>m.subject(e.cause)&1 == 0:
		list := s.pending[h]
		s.pending[h] = append(list[:len(list):len(list)], e)
		if isLoss {
			s.fallen[h] |= 1 << (int(e.cause) - m.n - 1)
		}
	}
	m.decide(s, h)
}

func (m *settling) believe(s *settleState, h int, cause uint8) {
	sub := m.subject(cause)
	if s.settled[h]>>sub&1 != 0 {
		return
	}
	s.settled[h] |= 1 << sub
	if gone := sub - 1; gone >= 0 {
		s.lost[h] |= 1 << gone
		s.fallen[h] |= 1 << gone
	}
	if s.cause[h] == 0 { // which the loss of a host is, too: the Comm has its ranks
		s.cause[h] = cause
	}
}

// decide puts in order what is proposed, if host h is the one to do that.
func (m *settling) decide(s *settleState, h int) {
	for o := range h {
		if !has(s.fallen[h], o) {
			return
		}
	}
	for len(s.pending[h]) > 0 && !has(s.fallen[h], h) {
		e := s.pending[h][0]
		s.pending[h] = s.pending[h][1:]
		if s.settled[h]>>m.subject(e.cause)&1 == 0 {
			e.decided = true
			m.publish(s, h, e)
		}
	}
}

// accuse has host h find the end of its connection with o.
func (m *settling) accuse(s *settleState, h, o int) {
	s.cut[h] |= 1 << o
	s.mail[o][h] = nil
	if !has(s.lost[h], h) && !has(s.lost[h], o) {
		s.own[h] |= 1 << m.lossOf(o)
		m.publish(s, h, news{m.lossOf(o), uint8(h), false})
	}
}

func (m *settling) steps(s *settleState, all []step[*settleState]) []step[*settleState] {
	do := func(fault bool, text string, a, b int) *settleState { return done(s, &all, fault, text, a, b) }
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
				all[len(all)-1].what.more = m.name(box[0])
				t.mail[o][h] = box[1:]
				m.publish(t, h, box[0])
			} else if has(s.broken[h], o) || has(s.ended, o) {
				m.accuse(do(false, "host %d finds the end of its connection with host %d", h, o), h, o)
			}
			if o > h && s.breaks < uint8(m.breaks) && !has(s.broken[h]|s.cut[o], o) && !has(s.ended, o) {
				t := do(true, "the connection of hosts %d and %d breaks", h, o)
				t.breaks++
				t.broken[h] |= 1 << o
				t.broken[o] |= 1 << h
				t.mail[h][o], t.mail[o][h] = nil, nil
			}
		}
		if s.proposals < uint8(m.proposers) && s.cause[h] == 0 && s.own[h]>>(h+1)&1 == 0 {
			t := do(true, "host %d finds a cause", h, 0)
			t.proposals++
			t.own[h] |= 1 << (h + 1)
			if m.eager {
				t.cause[h] = uint8(h + 1)
			}
			m.publish(t, h, news{uint8(h + 1), uint8(h), false})
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
		if !x.fault {
			return all
		}
	}
	// Nothing is under way: proposals that nobody has decided are believed.
	for h := range m.n {
		for i, e := range s.pending[h] {
			if !has(s.ended, h) && int(e.from) == h && s.settled[h]>>m.subject(e.cause)&1 == 0 {
				t := do(false, "host %d believes what it has proposed: %s", h, 0)
				all[len(all)-1].what = deed{"host %d believes what nobody has decided", int8(h), 0, ""}
				t.pending[h] = append(append([]news(nil), s.pending[h][:i]...), s.pending[h][i+1:]...)
				e.decided = true
				m.publish(t, h, e)
			}
		}
	}
	return all
}

func (m *settling) name(e news) string {
	what := "proposed"
	if e.decided {
		what = "decided"
	}
	if int(e.cause) > m.n {
		return fmt.Sprintf("%s, that host %d is lost", what, int(e.cause)-m.n-1)
	}
	return fmt.Sprintf("%s, the cause of host %d", what, e.cause-1)
}

func (m *settling) check(s *settleState, end bool) error {
	if !end {
		return nil
	}
	for h := range m.n {
		if has(s.ended, h) || has(s.lost[h], h) {
			continue
		}
		for o := range m.n {
			switch {
			case has(s.ended, o) && !has(s.lost[h], o):
				return fmt.Errorf("host %d has never heard that host %d has ended", h, o)
			case o == h || has(s.ended, o) || has(s.lost[o], o) || has(s.lost[h], o):
			case (s.cause[h] == 0) != (s.cause[o] == 0):
				return fmt.Errorf("hosts %d and %d are both there, and one has heard of no failure: %d, %d", h, o, s.cause[h],
					s.cause[o])
			case s.cause[h] != s.cause[o] && s.breaks == 0:
				return fmt.Errorf("hosts %d and %d are both there, and believe different causes: %d, %d", h, o, s.cause[h],
					s.cause[o])
			}
		}
		for o := range m.n {
			if has(s.lost[h], o) && !has(s.ended, o) && s.breaks == 0 {
				return fmt.Errorf("host %d believes that host %d is lost, which lives", h, o)
			}
		}
	}
	return nil
}

func (m *settling) key(s *settleState, b []byte) []byte {
	b = append(b, s.ended, s.proposals, s.crashes, s.breaks)
	one := func(e news) {
		if b = append(b, e.cause, e.from); e.decided {
			b = append(b, 1)
		}
		b = append(b, '/')
	}
	for h := range m.n {
		if has(s.ended, h) {
			b = append(b, '-')
		} else {
			b = append(b, s.cut[h], s.broken[h], s.lost[h], s.fallen[h], s.cause[h], byte(s.settled[h]), byte(s.own[h]),
				byte(s.own[h]>>8))
			b = binary.LittleEndian.AppendUint64(b, s.passed[h])
			for _, e := range s.pending[h] {
				one(e)
			}
		}
		for o := range m.n {
			b = append(b, '>')
			for _, e := range s.mail[h][o] {
				one(e)
			}
		}
	}
	return b
}
