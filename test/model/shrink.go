package model

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/goccl/goccl/internal/agree"

	"github.com/goccl/goccl/test/model/explore"
)

// shrinking is Shrink among n ranks on hosts of their own. It drives the engine's own functions, package agree. What
// may happen besides: a rank ends, or is given up though it lives (it was stopped), or has no descriptors; a connection
// breaks, and what is on its way over it is lost; a rank gives up, as after its deadline. That a rank is lost, each
// other hears at any time later; a rank that is given up hears it, too.
type shrinking struct {
	n       int
	crashes int        // ranks that end, are given up, or cannot connect
	breaks  int        // connections that break
	quits   int        // ranks that give up
	closes  int        // ranks that close the Comm and call no Shrink: those that speak with them see it, and no others
	spares  int        // of the ranks, the last: see replace.go
	cuts    int        // 1: the hosts may divide into two sides
	tree    agree.Tree // nil: each rank speaks with the lead itself

	// What bounds the states of more ranks.
	begun   bool // all ranks have called Shrink
	ends    bool // ranks end, and are not lost in other ways
	apart   int  // the hosts are divided: those of these ranks from the others
	reports bool // ranks say up who has come, at any time, though some lack: what they do while they wait for long

	// Planted errors.
	alone   bool // a rank that cannot connect takes all others for gone, and they it
	hasty   bool // a rank gives up though it is ready
	forgets bool // a rank that finds the others at their end without it takes them for gone
	boasts  bool // a rank that hears a proposal says that all are ready for it
	once    bool // a rank that has reported does not say when the others have come
	ageless bool // what a rank said to an earlier lead counts for this one
	replacingErrors
}

var _ explore.System[*shrinkState] = (*shrinking)(nil)

// ranksMax is the most ranks that are explored.
const ranksMax = 4

// shrinkState is all there is at a moment. Sets of ranks are bits.
type shrinkState struct {
	parties [ranksMax]*agree.Party
	began   uint8
	ended   uint8                              // their processes
	lost    uint8                              // the failure detector says so
	knows   [ranksMax]uint8                    // of whom a rank has heard that
	mail    [ranksMax][ranksMax][]agree.Notice // by sender and receiver
	// a rank has not noticed yet that its connection with these is new
	renewed               [ranksMax]uint8
	faults, breaks, quits uint8
	closed                uint8
	suspected             uint8           // lost ranks whose loss was first reported as a silence, and not as their end
	certain               [ranksMax]uint8 // of whom a rank is certain that they have ended
	reported              uint8           // ranks that have, if that is to be all they say
	side                  uint8           // where the hosts are divided: that of rank 0
	believed              [ranksMax]uint8 // 1 + the number that a rank has taken without a decision
}

func has(set uint8, r int) bool { return set>>r&1 != 0 }

func (m *shrinking) Start() *shrinkState {
	s := &shrinkState{side: uint8(m.apart)}
	for r := range m.n {
		s.parties[r] = agree.New(r, m.n, agree.Asks{Make: func(uint64, []int32) error { return nil }, Tree: m.tree})
	}
	for r := range m.n {
		if m.begun {
			s.began |= 1 << r
			m.look(s, r)
		}
	}
	return s
}

// runs reports whether rank r is in Shrink.
func (s *shrinkState) runs(r int) bool {
	return has(s.began&^s.ended, r) && s.parties[r].End == agree.Open
}

// act has rank r do something, and sends what it says. Nobody reads what is said to a rank that has come to its end, or
// by one that is known to be gone. That a lead has come changes nothing but the words of an error.
func (m *shrinking) act(s *shrinkState, r int, f func(p *agree.Party)) {
	p := s.parties[r].Clone()
	s.parties[r] = p
	p.HasEnded = func(o int) bool { return has(s.closed, o) || m.spares > 0 && has(s.certain[r], o) }
	p.HasLeft = func(o int) bool { return has(s.closed, o) }
	f(p)
	p.HasEnded, p.HasLeft = nil, nil
	if m.boasts && !p.Leads() {
		for _, l := range p.Post {
			if l.Kind == agree.Propose {
				p.Post = append(p.Post, agree.Letter{To: p.Up(),
					Notice: agree.Notice{Kind: agree.Ready, Lead: l.Lead, Ballot: l.Ballot, For: l.Ranks}})
			}
		}
	}
	for _, l := range p.Post {
		if has(s.reported, r) && l.Kind == agree.Here {
			continue
		}
		if !s.apart(r, l.To) && !has(s.ended, l.To) && !has(s.knows[l.To], r) && s.parties[l.To].End == agree.Open &&
			(l.Kind != agree.Alive || len(l.Left) > 0) {
			box := s.mail[r][l.To]
			s.mail[r][l.To] = append(box[:len(box):len(box)], l.Notice)
		}
	}
	p.Post = nil
	if p.End != agree.Open {
		m.hangUp(s, r)
	}
}

// hangUp drops what nobody reads any more.
func (m *shrinking) hangUp(s *shrinkState, r int) {
	for o := range m.n {
		s.mail[o][r] = nil
		s.renewed[o] &^= 1 << r
	}
	s.renewed[r] = 0
}

// look has rank r see who is lost, as far as it has heard.
func (m *shrinking) look(s *shrinkState, r int) {
	if has(s.knows[r], r) {
		m.act(s, r, (*agree.Party).Lost)
		return
	}
	m.act(s, r, func(p *agree.Party) { p.Look(func(o int) bool { return has(s.knows[r], o) }) })
}

func (m *shrinking) Steps(s *shrinkState, all []explore.Step[*shrinkState]) []explore.Step[*shrinkState] {
	do := func(fault bool, text string, a, b int) *shrinkState { return explore.Done(s, &all, fault, text, a, b) }
	for r := range m.n {
		p := s.parties[r]
		if m.spares > 0 && p.End == agree.Agreed && !has(s.ended, r) && s.faults < uint8(m.crashes) {
			t := do(true, "rank %d ends, which has a Comm", r, 0)
			t.faults++
			t.ended, t.lost = t.ended|1<<r, t.lost|1<<r
		}
		if has(s.ended, r) || p.End != agree.Open {
			continue
		}
		if s.faults < uint8(m.crashes) {
			t := do(true, "rank %d ends", r, 0)
			t.faults++
			t.ended, t.lost = t.ended|1<<r, t.lost|1<<r
			m.hangUp(t, r)
			if !has(s.lost, r) && !m.ends {
				t := do(true, "rank %d is given up, though it lives", r, 0)
				t.faults++
				t.lost, t.suspected = t.lost|1<<r, t.suspected|1<<r
			}
		}
		for o := range m.n {
			if !has(s.knows[r], o) && (has(s.lost, o) || s.apart(r, o)) {
				t := do(false, "rank %d hears that rank %d is lost", r, o)
				t.knows[r] |= 1 << o
				if has(s.ended&^s.suspected, o) && (!s.apart(r, o) || m.late) {
					t.certain[r] |= 1 << o
				}
				t.mail[o][r], t.renewed[r] = nil, t.renewed[r]&^(1<<o)
				if has(t.began, r) {
					m.look(t, r)
				}
			}
		}
		if has(s.closed, r) {
			continue
		}
		if !has(s.began, r) {
			if bits.OnesCount8(s.closed) < m.closes {
				t := do(true, "rank %d closes the Comm", r, 0)
				t.closed |= 1 << r
			}
			t := do(false, "rank %d calls Shrink", r, 0)
			t.began |= 1 << r
			m.look(t, r)
			continue
		}
		for _, o := range p.Hears() {
			if box := s.mail[o][r]; len(box) > 0 {
				t := do(false, "rank %d hears of rank %d: %s", r, o)
				all[len(all)-1].What.More = says[box[0].Kind]
				t.mail[o][r] = box[1:]
				m.act(t, r, func(p *agree.Party) {
					n := box[0]
					if m.ageless {
						n.Lead = int32(p.Lead())
					}
					p.Hear(o, n)
				})
				m.believe(t, r, &box[0])
			}
		}
		if m.reports {
			m.report(do(true, "rank %d reports who has come", r, 0), r)
		}
		for o := range m.n {
			if o != r && !has(s.knows[r], o) {
				m.between(s, r, o, do)
			}
		}
		if s.quits < uint8(m.quits) && (p.MayQuit() || m.hasty && !p.Decided) {
			t := do(true, "rank %d gives up", r, 0)
			t.quits++
			m.act(t, r, (*agree.Party).Give)
		}
		if s.faults < uint8(m.crashes) && !has(s.lost, r) && !m.ends {
			t := do(true, "rank %d cannot connect", r, 0)
			t.faults++
			if m.alone {
				for o := range m.n {
					if o != r && t.runs(o) {
						m.act(t, o, func(p *agree.Party) { p.Look(func(x int) bool { return x == r }) })
					}
				}
				m.act(t, r, func(p *agree.Party) { p.Look(func(int) bool { return true }) })
			} else {
				t.lost, t.suspected, t.knows[r] = t.lost|1<<r, t.suspected|1<<r, t.knows[r]|1<<r
				m.look(t, r)
			}
		}
	}
	return m.cut(s, all)
}

// report has rank r say up who has come.
func (m *shrinking) report(s *shrinkState, r int) {
	says := false
	m.act(s, r, func(p *agree.Party) {
		p.Report()
		says = len(p.Post) > 0
	})
	if says && m.once {
		s.reported |= 1 << r
	}
}

// between is what may happen to rank r, which is in Shrink, with rank o, which it does not know to be lost.
func (m *shrinking) between(s *shrinkState, r, o int, do func(bool, string, int, int) *shrinkState) {
	if has(s.renewed[r], o) {
		t := do(false, "rank %d connects anew with rank %d", r, o)
		t.renewed[r] &^= 1 << o
		m.act(t, r, func(p *agree.Party) { p.Renewed(o) })
	}
	if has(s.ended, o) || s.apart(r, o) {
		return
	}
	if has(s.closed, o) {
		if s.parties[r].Waits(o) {
			t := do(false, "rank %d sees that rank %d has closed the Comm", r, o)
			m.act(t, r, func(p *agree.Party) { p.Look(func(x int) bool { return x == o }) })
		}
		return
	}
	switch s.parties[o].End {
	case agree.Agreed:
		t := do(false, "rank %d sees that rank %d is done", r, o)
		m.act(t, r, func(p *agree.Party) {
			if m.forgets {
				p.Look(func(x int) bool { return x == o })
			} else {
				p.Over(o)
			}
		})
	case agree.GaveUp:
		t := do(false, "rank %d sees that rank %d has given up", r, o)
		m.act(t, r, func(p *agree.Party) { p.Dropped(o) })
	}
	if o > r && s.breaks < uint8(m.breaks) && s.runs(o) && len(s.mail[r][o])+len(s.mail[o][r]) > 0 {
		t := do(true, "the connection of ranks %d and %d breaks", r, o)
		t.breaks++
		t.mail[r][o], t.mail[o][r] = nil, nil
		t.renewed[r] |= 1 << o
		t.renewed[o] |= 1 << r
	}
}

var says = [...]string{agree.Here: "here", agree.Propose: "propose", agree.Ready: "ready", agree.Decide: "decide",
	agree.Decided: "decided",
	agree.Done:    "done", agree.Quit: "quit", agree.Alive: "alive"}

func (m *shrinking) Check(s *shrinkState, end bool) error {
	if m.spares > 0 {
		if err := m.checkReplaced(s, end); err != nil || s.side != 0 {
			return err
		}
	}
	for r, p := range s.parties[:m.n] {
		told := has(s.lost, r) // or will be: its Comm fails as soon as it hears
		switch {
		case has(s.ended|s.closed, r) || told && p.End != agree.Agreed:
			continue
		case p.End == agree.Out:
			return fmt.Errorf("rank %d is told that it was given up, and it was not", r)
		case p.End == agree.GaveUp && s.quits == 0:
			return fmt.Errorf("rank %d has given up, and nobody had reason to", r)
		case p.End == agree.Open && end:
			return fmt.Errorf("rank %d waits for ever", r)
		case p.End != agree.Agreed:
			continue
		}
		if p.Made() != p.Ballot() {
			return fmt.Errorf("rank %d has a Comm, and has not made what it needs", r)
		}
		for o, q := range s.parties[:m.n] {
			in := slices.Contains(p.Ranks, int32(o))
			switch {
			case o == r && !in:
				return fmt.Errorf("rank %d is no member of its own Comm", r)
			case in && !has(s.began, o):
				return fmt.Errorf("rank %d has a Comm with rank %d, which has not called Shrink", r, o)
			case has(s.lost|s.closed, o):
			case !in:
				return fmt.Errorf("rank %d has a Comm without rank %d, which is not lost", r, o)
			case told:
			case q.End == agree.Agreed && (p.Ballot() != q.Ballot() || !slices.Equal(p.Ranks, q.Ranks)):
				return fmt.Errorf("rank %d has a Comm of %v, and rank %d one of %v", r, p.Ranks, o, q.Ranks)
			case q.End == agree.GaveUp || q.End == agree.Open && !q.Decided:
				return fmt.Errorf("rank %d has a Comm, and rank %d, a member, has not decided", r, o)
			}
		}
	}
	return nil
}

func (m *shrinking) Key(s *shrinkState, b []byte) []byte {
	b = append(b, s.faults, s.breaks, s.quits, s.closed, s.began, s.ended, s.lost, s.side, s.reported)
	if m.spares > 0 {
		b = append(b, s.suspected)
	}
	for r, p := range s.parties[:m.n] {
		switch {
		case has(s.ended, r): // what it did counts no more, but for a Comm that stood by then
			if m.spares > 0 && p.End == agree.Agreed {
				b = p.AppendEnd(b)
			}
			continue
		case p.End != agree.Open:
			b = append(p.AppendEnd(b), s.believed[r])
			if m.ownView {
				b = append(b, s.knows[r])
			}
			continue
		}
		b = p.Append(append(b, s.knows[r], s.renewed[r], s.believed[r]))
		if m.spares > 0 {
			b = append(b, s.certain[r])
		}
		for o := range m.n {
			b = append(b, byte(len(s.mail[o][r])))
			for i := range s.mail[o][r] {
				b = s.mail[o][r][i].Append(b)
			}
		}
	}
	return b
}
