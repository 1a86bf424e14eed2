package model

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/agree"

	"github.com/goccl/goccl/test/model/explore"
)

// Replacing lost ranks by spares, over Shrink: the last ranks are spares, which have no number. All
// that are left agree on who they are. A majority of the last generation goes on (agree.Majority)
// as a Comm of the old size: a rank keeps its number, and the numbers of lost ranks go to the
// spares among those that have agreed. That Comm is the next generation once it stands: all of its
// ranks have come to it. If some are lost before, the others of it agree once more, and still need
// a majority of the generation before. Those that believe that it stands need one of it.
//
// The hosts may divide into two sides, each of which takes the other for lost. That ranks of one's
// own side have ended is certain, if that is the first that is heard of their loss. Nothing of the
// other side is.
//
// Promised is that no two sides go on, and that all ranks that go on have the same numbers.

// replacingErrors are planted.
type replacingErrors struct {
	ownView   bool // a rank finds the numbers by whom it knows to be lost, not by who has agreed
	survivors bool // whoever is left is a majority: of themselves
	believes  bool // a spare takes its number as soon as that is proposed
	late      bool // a rank of the other side that has ended after the hosts divided counts as one whose end is certain
	unstood   bool // what was agreed on is a generation though its ranks have not come to it
}

// apart reports whether the hosts of two ranks are divided.
func (s *shrinkState) apart(r, o int) bool { return s.side != 0 && has(s.side, r) != has(s.side, o) }

// cut lists how the hosts may divide.
func (m *shrinking) cut(s *shrinkState, all []explore.Step[*shrinkState]) []explore.Step[*shrinkState] {
	if m.cuts == 0 || s.side != 0 {
		return all
	}
	for side := 1; side < 1<<m.n-1; side += 2 {
		t := *s
		t.side = uint8(side)
		for r := range m.n {
			for o := range m.n {
				if t.apart(r, o) {
					t.mail[r][o] = nil
					t.renewed[r] &^= 1 << o
				}
			}
		}
		what := explore.Deed{Text: "the hosts divide: ranks %b on one side", A: int8(side)}
		all = append(all, explore.Step[*shrinkState]{What: what, Fault: true, To: &t})
	}
	return all
}

// majority is agree.Majority, or what is planted in its place.
func (m *shrinking) majority(last, left, ended []int) bool {
	if m.survivors {
		return agree.Majority(left, left, nil)
	}
	return agree.Majority(last, left, ended)
}

// goesOn is who rank r goes on with, nil if it does not.
func (m *shrinking) goesOn(s *shrinkState, r int) []int {
	p := s.parties[r]
	if has(s.ended|s.lost, r) || p.End != agree.Agreed {
		return nil
	}
	var all []int
	for o := range m.n {
		all = append(all, o)
	}
	members, ended := ints(p.Ranks), ints(p.Ended)
	if !m.majority(all, members, ended) {
		return nil
	}
	var left []int
	stands := true
	for _, o := range members {
		stands = stands && (s.parties[o].End == agree.Agreed && s.parties[o].Ballot() == p.Ballot() || m.unstood)
		switch {
		case !s.apart(r, o) && !has(s.lost, o):
			left = append(left, o)
		case has(s.ended&^s.suspected, o) && (!s.apart(r, o) || m.late):
			ended = append(ended, o)
		}
	}
	if len(left) == len(members) || stands && m.majority(members, left, ended) || m.majority(all, left, ended) {
		return left
	}
	return nil
}

// believe has rank r take its number by what it hears, if that is planted.
func (m *shrinking) believe(s *shrinkState, r int, n *agree.Notice) {
	if !m.believes || n.Kind != agree.Propose || r < m.n-m.spares || s.believed[r] != 0 {
		return
	}
	if number := slices.Index(m.numbersOf(ints(n.Ranks)), r); number >= 0 {
		s.believed[r] = uint8(1 + number)
	}
}

// numbers says which rank has each number, as rank r has it.
func (m *shrinking) numbers(s *shrinkState, r int) []int {
	members := ints(s.parties[r].Ranks)
	if m.ownView {
		members = nil
		for o := range m.n {
			if !has(s.knows[r], o) {
				members = append(members, o)
			}
		}
	}
	return m.numbersOf(members)
}

// numbersOf says which of the members has each number, -1 where there are too few.
func (m *shrinking) numbersOf(members []int) []int {
	var by []int
	spare := m.n - m.spares
	for number := range m.n - m.spares {
		if slices.Contains(members, number) {
			by = append(by, number)
			continue
		}
		for spare < m.n && !slices.Contains(members, spare) {
			spare++
		}
		if spare == m.n {
			by = append(by, -1)
			continue
		}
		by = append(by, spare)
		spare++
	}
	return by
}

func ints(ranks []int32) (list []int) {
	for _, r := range ranks {
		list = append(list, int(r))
	}
	return list
}

// checkReplaced says what is wrong with the ranks that go on in a state.
func (m *shrinking) checkReplaced(s *shrinkState, end bool) error {
	for r, p := range s.parties[:m.n] {
		if end && p.End == agree.Open && !has(s.ended, r) && !has(s.knows[r], r) {
			return fmt.Errorf("rank %d waits for ever", r)
		}
		with := m.goesOn(s, r)
		if with == nil {
			continue
		}
		for number, o := range m.numbers(s, r) {
			for x := range m.n {
				if x != o && s.believed[x] == uint8(1+number) && !has(s.ended|s.lost, x) && !s.apart(x, r) {
					return fmt.Errorf("ranks %d and %d have number %d", o, x, number)
				}
			}
		}
		for o := range r {
			other := m.goesOn(s, o)
			switch {
			case other == nil:
			case s.apart(r, o):
				return fmt.Errorf("two sides go on: rank %d with %v, and rank %d with %v", o, other, r, with)
			case p.Ballot() != s.parties[o].Ballot():
				return fmt.Errorf("ranks %d and %d go on, by different decisions", o, r)
			case !slices.Equal(m.numbers(s, r), m.numbers(s, o)):
				return fmt.Errorf("to rank %d the numbers are of %v, to rank %d of %v", o, m.numbers(s, o), r, m.numbers(s, r))
			}
		}
	}
	return nil
}
