package model

import (
	"fmt"

	"github.com/goccl/goccl/internal/lobby"

	"github.com/goccl/goccl/test/model/explore"
)

// growing is a meeting in which a job grows, from when its ranks and its guests are in the pool of
// the new job: whether it counts. All have a barrier there. The lead, process 0, which has come out
// of it, adds 1 to a number in the store; it counts if the number was 0. The lead tells the others.
// One that does not hear it, or whose barrier fails, asks: it adds lobby.Against, and lobby.Judge
// says what it knows by that. Who knows leaves word for those that do not.
//
// What may happen besides: a process ends; the connections of one break, or it has waited for too
// long, and it asks; the lead does not hear what the store has answered, and asks as well.
//
// Promised is that the meeting counts for all or for none; that where it does all were in the pool;
// and that nobody waits for ever, or only where one that knew ended before it left word.
type growing struct {
	n       int
	crashes int // processes that end
	breaks  int // 1: a process is cut off, or gives up
	lost    int // answers of the store to the lead that are lost

	// Planted errors.
	early  bool // the lead does not wait for the others
	trusts bool // a rank without an answer concludes that the meeting does not count
	sum    bool // the number tells everybody: the meeting counts if the lead was there
	hopes  bool // a lead without an answer of the store concludes that its word has come through
	mute   bool // who knows leaves no word
}

var _ explore.System[growState] = (*growing)(nil)

// growMost is the most processes that are explored.
const growMost = 4

// What a process does next.
const (
	comes   = iota // into the pool
	meets          // waits in the barrier
	adds           // the lead has come out of it
	listens        // another has, and waits for the lead's word
	asks           // it has not heard it, or the barrier has failed
	leaves         // it knows, and is to leave word
	reads          // it waits for the word
	knowsIt
)

// growState is all there is at a moment.
type growState struct {
	at      [growMost]uint8
	counts  [growMost]bool // what it knows, from leaves on
	ended   uint8
	cut     uint8
	came    uint8 // into the pool, at some time
	number  int64
	word    uint8 // 1: it does not count, 2: it does
	told    uint8 // to whom the lead's word is on its way
	crashes uint8
	lost    uint8
}

func (m *growing) Start() growState { return growState{} }

func (m *growing) Steps(s growState, all []explore.Step[growState]) []explore.Step[growState] {
	do := func(fault bool, text string, p int, f func(t *growState)) {
		t := s
		f(&t)
		all = append(all, explore.Step[growState]{What: explore.Deed{Text: text, A: int8(p)}, Fault: fault, To: t})
	}
	everyone := uint8(1<<m.n - 1)
	for p := range m.n {
		if has(s.ended, p) {
			continue
		}
		if s.at[p] != knowsIt && s.crashes < uint8(m.crashes) {
			do(true, "process %d ends", p, func(t *growState) { t.ended |= 1 << p; t.crashes++ })
		}
		troubled := s.ended != 0 || s.cut != 0 // which all of the pool hear, at any time
		if waits := s.at[p] == comes || s.at[p] == meets || s.at[p] == listens; waits && !has(s.cut, p) && !troubled &&
			m.breaks > 0 {
			do(true, "process %d is cut off, or gives up", p, func(t *growState) { t.cut |= 1 << p; t.at[p] = m.missed(t, p) })
		} else if waits && troubled {
			do(false, "process %d hears of a failure", p, func(t *growState) { t.at[p] = m.missed(t, p) })
		}
		switch s.at[p] {
		case comes:
			do(false, "process %d comes into the pool", p, func(t *growState) { t.at[p] = meets; t.came |= 1 << p })
		case meets:
			if s.came == everyone || m.early && p == 0 {
				do(false, "process %d comes out of the barrier", p, func(t *growState) {
					if t.at[p] = listens; p == 0 {
						t.at[p] = adds
					}
				})
			}
		case adds:
			do(false, "process %d, the lead, says that the meeting counts", p, func(t *growState) {
				t.number++
				m.learns(t, p, t.number == 1)
			})
			if s.lost < uint8(m.lost) {
				do(true, "process %d, the lead, does not hear what the store answers", p,
					func(t *growState) { t.number++; t.lost++; m.unheard(t, p) })
				do(true, "process %d, the lead, does not reach the store", p, func(t *growState) { t.lost++; m.unheard(t, p) })
			}
		case listens:
			if has(s.told, p) {
				do(false, "process %d hears the lead", p, func(t *growState) { t.at[p], t.counts[p] = knowsIt, s.counts[0] })
			}
		case asks:
			do(false, "process %d asks the store", p, func(t *growState) {
				t.number += lobby.Against
				counts, known := lobby.Judge(t.number)
				if m.sum {
					counts, known = t.number%lobby.Against != 0, true
				}
				if t.at[p] = reads; known {
					m.learns(t, p, counts)
				}
			})
		case leaves:
			do(false, "process %d leaves word", p, func(t *growState) {
				if t.at[p] = knowsIt; !m.mute {
					t.word = 1
					if t.counts[p] {
						t.word = 2
					}
				}
				if p == 0 { // and tells those that listen
					t.told = everyone
				}
			})
		case reads:
			if s.word != 0 {
				do(false, "process %d reads the word", p, func(t *growState) { t.at[p], t.counts[p] = knowsIt, s.word == 2 })
			}
		}
	}
	return all
}

// missed is what a process does that does not hear the lead.
func (m *growing) missed(t *growState, p int) uint8 {
	if m.trusts {
		t.counts[p] = false
		return knowsIt
	}
	return asks
}

// unheard is what the lead does that does not hear the store.
func (m *growing) unheard(t *growState, p int) {
	if t.at[p] = asks; m.hopes {
		m.learns(t, p, true)
	}
}

func (m *growing) learns(t *growState, p int, counts bool) { t.at[p], t.counts[p] = leaves, counts }

func (m *growing) Check(s growState, end bool) error {
	lost := false // what one knew that has ended since
	for p := range m.n {
		lost = lost || has(s.ended, p) && s.at[p] == leaves
	}
	for p := range m.n {
		knows := s.at[p] >= leaves && s.at[p] != reads
		if end && !knows && !has(s.ended, p) && !(s.at[p] == reads && lost) {
			return fmt.Errorf("process %d waits for ever", p)
		}
		if knows && s.counts[p] && s.came != 1<<m.n-1 {
			return fmt.Errorf("to process %d the meeting counts, and not all were there", p)
		}
		for o := range p {
			if knows && s.at[o] >= leaves && s.at[o] != reads && s.counts[o] != s.counts[p] {
				return fmt.Errorf("to process %d the meeting counts: %v, to process %d: %v", o, s.counts[o], p, s.counts[p])
			}
		}
	}
	return nil
}

func (m *growing) Key(s growState, b []byte) []byte {
	for p := range m.n {
		counts := byte(0)
		if s.counts[p] {
			counts = 1
		}
		b = append(b, s.at[p], counts)
	}
	return append(b, s.ended, s.cut, s.came, byte(s.number), byte(s.number>>32), s.word, s.told, s.crashes, s.lost)
}
