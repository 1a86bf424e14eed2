package model

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/test/model/explore"
)

// logging is the log of a host: a ring of a few slots in memory that processes share. Each process writes events of its
// own and reads all. One may end between any two of its stores. Where there is no room, a writer keeps the event until
// there is: that its Comm has failed shows meanwhile in the Comm's abort word.
type logging struct {
	n       int // processes
	slots   int
	events  int // of each process
	crashes int

	// Planted errors.
	overwrite bool // a writer does not wait for room: readers that are late pass over what was overwritten
	trusting  bool // a reader waits for whoever has claimed a slot, dead or not
}

var _ explore.System[*logState] = (*logging)(nil)

const (
	procsMax = 4
	slotsMax = 4
)

// slotState is a slot: claimed for event number by a process, in one store, and stamped when its value is there.
type slotState struct {
	number  uint8 // 1 + that of the event; 0: never used
	writer  uint8
	value   uint8 // which event of that process
	stamped bool
}

type logState struct {
	slots   [slotsMax]slotState
	next    uint8           // number of the next event
	dead    uint8           // processes
	at      [procsMax]uint8 // what each has claimed a slot for: 1 + the number
	written [procsMax]uint8 // events of each that stand in the log
	filled  uint8           // processes that have written the value, not the stamp
	read    [procsMax]uint8 // how far each has read
	seen    [procsMax]string
	crashes uint8
}

func (m *logging) Start() *logState { return &logState{} }

// room reports whether the slot of the next event has been read by all that live.
func (m *logging) room(s *logState) bool {
	if m.overwrite {
		return true
	}
	for p := range m.n {
		if !has(s.dead, p) && int(s.next)-int(s.read[p]) >= m.slots {
			return false
		}
	}
	return true
}

func (m *logging) Steps(s *logState, all []explore.Step[*logState]) []explore.Step[*logState] {
	do := func(fault bool, text string, a, b int) *logState { return explore.Done(s, &all, fault, text, a, b) }
	for p := range m.n {
		if has(s.dead, p) {
			continue
		}
		if s.crashes < uint8(m.crashes) {
			t := do(true, "process %d ends", p, 0)
			t.crashes++
			t.dead |= 1 << p
		}
		switch {
		case s.at[p] == 0 && int(s.written[p]) < m.events && m.room(s):
			t := do(false, "process %d claims the slot of event %d", p, int(s.next))
			t.next++
			t.at[p] = t.next
			t.slots[int(s.next)%m.slots] = slotState{number: t.next, writer: uint8(p)}
		case s.at[p] != 0 && !has(s.filled, p):
			t := do(false, "process %d writes event %d", p, int(s.at[p]-1))
			t.slots[int(s.at[p]-1)%m.slots].value = s.written[p] + 1
			t.filled |= 1 << p
		case s.at[p] != 0:
			t := do(false, "process %d stamps event %d", p, int(s.at[p]-1))
			t.slots[int(s.at[p]-1)%m.slots].stamped = true
			t.filled &^= 1 << p
			t.at[p] = 0
			t.written[p]++
		}
		if s.read[p] == s.next {
			continue
		}
		switch x := &s.slots[int(s.read[p])%m.slots]; {
		case x.number > s.read[p]+1:
			t := do(false, "process %d passes over event %d, which was overwritten", p, int(s.read[p]))
			t.read[p]++
		case x.stamped:
			t := do(false, "process %d reads event %d", p, int(s.read[p]))
			t.read[p]++
			t.seen[p] += string([]byte{'a' + x.writer, '0' + x.value})
		case has(s.dead, int(x.writer)) && !m.trusting:
			t := do(false, "process %d passes over event %d, whose writer is dead", p, int(s.read[p]))
			t.read[p]++
		}
	}
	return all
}

func (m *logging) Check(s *logState, end bool) error {
	for p := range m.n {
		if has(s.dead, p) || !end {
			continue
		}
		if int(s.written[p]) < m.events {
			return fmt.Errorf("process %d waits for room for ever", p)
		}
		if s.read[p] != s.next {
			return fmt.Errorf("process %d waits for event %d for ever", p, s.read[p])
		}
		for o := range m.n {
			for i := range s.written[o] {
				if e := []byte{'a' + uint8(o), '1' + i}; !slices.Contains(pairs(s.seen[p]), string(e)) {
					return fmt.Errorf("process %d has never heard of event %d of process %d, which was told", p, i+1, o)
				}
			}
		}
		for o := range p {
			if !has(s.dead, o) && !slices.Equal(common(s.seen[o], s.seen[p]), common(s.seen[p], s.seen[o])) {
				return fmt.Errorf("processes %d and %d believe events in different orders: %s, %s", o, p, s.seen[o], s.seen[p])
			}
		}
	}
	return nil
}

// common is the events of a that are in b too.
func common(a, b string) []string {
	other := pairs(b)
	return slices.DeleteFunc(pairs(a), func(e string) bool { return !slices.Contains(other, e) })
}

// pairs cuts what a process has seen into events.
func pairs(s string) (list []string) {
	for ; len(s) > 0; s = s[2:] {
		list = append(list, s[:2])
	}
	return list
}

func (m *logging) Key(s *logState, b []byte) []byte {
	b = append(b, s.next, s.dead, s.filled, s.crashes)
	for i := range m.slots {
		x := s.slots[i]
		b = append(b, x.number, x.writer, x.value)
		if x.stamped {
			b = append(b, 1)
		}
		b = append(b, '/')
	}
	for p := range m.n {
		b = append(b, s.at[p], s.written[p], s.read[p])
		b = append(append(b, s.seen[p]...), '/')
	}
	return b
}
