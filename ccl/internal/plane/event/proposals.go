package event

import (
	"slices"
	"sync"
	"time"
)

// Proposals are the events of one process that wait for a decision.
type Proposals struct {
	mu   sync.Mutex // guards list; it is held while Due asks whether a proposal is moot
	list []proposal
}

type proposal struct {
	event Event
	until time.Duration // in lived time
}

// Add keeps e until it is decided, or until that time has come.
func (p *Proposals) Add(e Event, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, proposal{e, until})
}

// Any reports whether there are some.
func (p *Proposals) Any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list) > 0
}

// Due takes out those that are moot, and returns those whose time has come, as events to be believed.
func (p *Proposals) Due(now time.Duration, moot func(*Event) bool) (due []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(x proposal) bool {
		switch {
		case moot(&x.event):
			return true
		case now < x.until:
			return false
		}
		x.event.Stage = Final
		due = append(due, x.event)
		return true
	})
	return due
}
