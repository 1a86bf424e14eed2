//go:build oneccl && cgo && linux

package oneccl

import (
	"errors"
	"sync"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/sycl"
)

// marks are those of a communicator.
type marks struct {
	mu   sync.Mutex
	idle []*mark // set by nothing at present
	all  []*mark
}

// mark is a place in a queue.
type mark struct {
	of    *marks
	event sycl.Event
}

// Mark notes the present end of a queue.
func (e *comm) Mark(stream uintptr) (engine.Mark, error) {
	m, err := e.marks.get()
	if err != nil {
		return nil, err
	}
	if err := m.event.Record(sycl.Queue(stream)); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// get is an idle one, or a new one.
func (ms *marks) get() (*mark, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if n := len(ms.idle); n > 0 {
		m := ms.idle[n-1]
		ms.idle = ms.idle[:n-1]
		return m, nil
	}
	event, err := sycl.NewEvent()
	if err != nil {
		return nil, err
	}
	m := &mark{ms, event}
	ms.all = append(ms.all, m)
	return m, nil
}

func (m *mark) free() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.idle = append(m.of.idle, m)
}

// close closes all their events.
func (ms *marks) close() (err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.all {
		err = errors.Join(err, m.event.Close())
	}
	return err
}

// Passed reports whether the queue has got to the mark.
func (m *mark) Passed() (bool, error) {
	done, err := m.event.Done()
	if done || err != nil {
		m.free()
	}
	return done, err
}
