package algo

import (
	"fmt"

	"github.com/goccl/goccl/internal/op"
)

// verify compares what the ranks of a proof hold at its end with what its kind
// promises.
func (p *proof) verify(fromLeft bool) error {
	fold := leaf(0)
	for r := 1; fromLeft && r < p.n; r++ {
		fold = p.terms.op(fold, leaf(r))
	}
	proven := map[term]bool{}
	for r := range p.ranks {
		pl := &p.ranks[r]
		if p.kind == op.Barrier {
			if missing, ok := pl.heard.all(p.n); !ok {
				return fmt.Errorf("rank %d ends without knowing that rank %d is there", r, missing)
			}
			continue
		}
		for part := range pl.v {
			if !p.promised(r, part) {
				continue
			}
			x := pl.v[part]
			switch {
			case x == 0:
				return fmt.Errorf("rank %d ends without part %d", r, part)
			case !p.kind.Reduces():
				if want := leaf(p.source(part)); x != want {
					return fmt.Errorf("rank %d ends with %s in part %d, not %s", r, p.terms.text(x), part, p.terms.text(want))
				}
				continue
			case p.kind == op.AllReduce && x != p.ranks[0].v[part]:
				return fmt.Errorf("part %d is %s on rank %d but %s on rank 0", part, p.terms.text(x), r, p.terms.text(p.ranks[0].v[part]))
			case fromLeft && x != fold:
				return fmt.Errorf("part %d on rank %d is %s, not the fold from the left", part, r, p.terms.text(x))
			}
			if !proven[x] {
				if err := p.terms.eachOnce(x, p.n); err != nil {
					return fmt.Errorf("part %d on rank %d is %s: %w", part, r, p.terms.text(x), err)
				}
				proven[x] = true
			}
		}
	}
	return nil
}

// promised reports whether the kind says what rank r holds in part at the end.
func (p *proof) promised(r, part int) bool {
	switch p.kind {
	case op.Reduce, op.Gather:
		return r == p.root
	case op.ReduceScatter, op.Scatter:
		return r == part
	default:
		return true
	}
}

// source is the rank whose data a kind that only moves leaves in part.
func (p *proof) source(part int) int {
	if p.kind == op.Broadcast || p.kind == op.Scatter {
		return p.root
	}
	return part
}

// A term is an expression over contributions: nothing, a leaf r+1 for that of rank
// r, or a number below zero for an operation. Equal terms are equal expressions.
type term int32

func leaf(rank int) term { return term(rank + 1) }

// terms is the operations there are.
type terms struct {
	args   [][2]term // of term -1-i
	number map[[2]term]term
}

func (t *terms) op(a, b term) term {
	args := [2]term{a, b}
	x, known := t.number[args]
	if !known {
		if t.number == nil {
			t.number = map[[2]term]term{}
		}
		t.args = append(t.args, args)
		x = term(-len(t.args))
		t.number[args] = x
	}
	return x
}

// eachOnce checks that x has each of n contributions exactly once.
func (t *terms) eachOnce(x term, n int) error {
	seen := newSet(n)
	for todo := []term{x}; len(todo) > 0; {
		x, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if x < 0 {
			todo = append(todo, t.args[-1-x][0], t.args[-1-x][1])
			continue
		}
		if r := int(x) - 1; !seen.add(r) {
			return fmt.Errorf("rank %d's contribution is in it twice", r)
		}
	}
	if missing, ok := seen.all(n); !ok {
		return fmt.Errorf("rank %d's contribution is missing", missing)
	}
	return nil
}

// text writes x out, (0+1)+2, if it is short enough to read.
func (t *terms) text(x term) string {
	const readable = 200
	var text func(x term, room int) string
	text = func(x term, room int) string {
		switch {
		case x == 0:
			return "nothing"
		case x > 0:
			return fmt.Sprint(x - 1)
		case room < 0:
			return "..."
		}
		a := text(t.args[-1-x][0], room/2-2)
		return "(" + a + "+" + text(t.args[-1-x][1], room-len(a)-3) + ")"
	}
	return text(x, readable)
}

// A set is a set of ranks, and of those about to join it.
type set struct{ has, next []uint64 }

func newSet(n int) set {
	words := make([]uint64, 2*((n+63)/64))
	return set{words[:len(words)/2], words[len(words)/2:]}
}

// add adds r, and reports whether it was not there.
func (s set) add(r int) bool {
	bit := uint64(1) << (r % 64)
	was := s.has[r/64]
	s.has[r/64] |= bit
	return was&bit == 0
}

// later adds what other has once now is called.
func (s set) later(other set) {
	for i, w := range other.has {
		s.next[i] |= w
	}
}

func (s set) now() {
	for i, w := range s.next {
		s.has[i] |= w
	}
}

// all reports whether s has the ranks below n, or which is missing.
func (s set) all(n int) (missing int, ok bool) {
	for r := range n {
		if s.has[r/64]>>(r%64)&1 == 0 {
			return r, false
		}
	}
	return 0, true
}
