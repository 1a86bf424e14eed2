//go:build oneccl && cgo && linux

package oneccl

import (
	"github.com/goccl/goccl/ccl/internal/engine"
	"github.com/goccl/goccl/internal/sycl"
)

// mark is a place in a queue.
type mark struct {
	e     *comm
	event sycl.Event
}

// Mark notes the present end of a queue.
func (e *comm) Mark(stream uintptr) (engine.Mark, error) {
	m, err := e.freeMark()
	if err != nil {
		return nil, err
	}
	if err := m.event.Record(sycl.Queue(stream)); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

func (e *comm) freeMark() (*mark, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.marks); n > 0 {
		m := e.marks[n-1]
		e.marks = e.marks[:n-1]
		return m, nil
	}
	event, err := sycl.NewEvent()
	if err != nil {
		return nil, err
	}
	m := &mark{e, event}
	e.all = append(e.all, m)
	return m, nil
}

func (m *mark) free() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.marks = append(m.e.marks, m)
}

// Passed reports whether the queue has got to the mark.
func (m *mark) Passed() (bool, error) {
	done, err := m.event.Done()
	if done || err != nil {
		m.free()
	}
	return done, err
}
