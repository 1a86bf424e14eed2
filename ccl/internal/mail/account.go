package mail

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// Account is the mail of one rank in one Comm. All its methods are for any goroutine.
type Account struct {
	office *Office
	box    *Box
	comm   uint64
	self   int // rank of the world
	limit  time.Duration
	others []int // the other ranks of the Comm, as ranks of the world
	left   func(w int) bool

	mu       sync.Mutex
	live     map[pending]bool
	over     *call.Fault
	closed   bool         // over is that the rank has closed the Comm
	untold   []failed     // see Untold
	gone     map[int]bool // ranks that have closed the Comm, and from which nothing more can come
	watching bool
}

// pending is a Sending or a Receiving that has not ended.
type pending interface {
	expire(why *call.Fault)
	forsake(why *call.Fault)
	deadline() term
	waitsFor() int
}

// Open returns the mail of rank self of the world in a Comm, which others are members of, too. A
// message may take at most limit, if that is not 0. left reports whether a rank is known to have
// closed the Comm.
func (o *Office) Open(comm uint64, self int, others []int, limit time.Duration, left func(w int) bool) *Account {
	a := &Account{office: o, box: o.box(self), comm: comm, self: self, limit: limit, others: others, left: left, live: map[pending]bool{}, gone: map[int]bool{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accounts[member{comm, self}] = a
	return a
}

// What is what a message carries: Mem holds Count elements. Within is its limit, 0 for the Account's and
// a negative one for none.
type What struct {
	Use    Use
	Tag    int64
	Type   op.Type
	Count  int
	Mem    []byte
	Within time.Duration
}

// Send sends w to rank to of the world. Nobody may write to its memory until the message has ended.
func (a *Account) Send(w What, to int) *Sending {
	s := &Sending{to: to}
	s.begin(a, w)
	s.number.Store(newNumber())
	if why := a.take(s, to); why != nil {
		s.end(why)
		return s
	}
	a.office.line(a.self, to).send(s)
	return s
}

// Recv receives w, which rank from of the world sends, or any.
func (a *Account) Recv(w What, from int) *Receiving {
	r := &Receiving{from: from, source: -1}
	r.begin(a, w)
	if why := a.take(r, Any); why != nil {
		r.end(why)
		return r
	}
	a.post(r, false)
	return r
}

// post has r wait for its message; first is whether it was the first to wait before.
func (a *Account) post(r *Receiving, first bool) {
	a.box.post(r, first)
	// What had come from a rank before it closed the Comm is here.
	if why := a.goneFault(r.from); why != nil && a.box.withdraw(r) {
		r.end(why)
	}
}

// take counts a message in, unless it can come to nothing.
func (a *Account) take(m pending, to int) *call.Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over != nil:
		return a.over
	case to != Any && a.gone[to]:
		return call.NewFault(call.Closed, to, "")
	}
	a.live[m] = true
	if !a.watching {
		a.watching = true
		go a.watch()
	}
	return nil
}

func (a *Account) forget(m pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, m)
}

// failed is a message that has failed, of which the program has not been told.
type failed struct {
	of   *message
	sent bool
	why  *call.Fault
}

// untoldMost is how many of them an Account keeps.
const untoldMost = 64

// keep keeps m, a user's message that ends with why, until the program is told: unless that is nil, or the program has given m up, by
// Cancel, or by closing the Comm while it waited for a message.
func (a *Account) keep(m *message, sent bool, why *call.Fault) {
	if why == nil || m.path.Use != Links {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	givenUp := why.Code == call.Canceled && why != a.over || a.closed && why == a.over && !sent
	if !givenUp && len(a.untold) < untoldMost {
		a.untold = append(a.untold, failed{m, sent, why})
	}
}

func (a *Account) drop(m *message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.untold = slices.DeleteFunc(a.untold, func(f failed) bool { return f.of == m })
}

// Untold calls f with each failed message, up to a number, of which the program has not been told: whether it was sent, and why it
// has failed.
func (a *Account) Untold(f func(sent bool, why *call.Fault)) {
	a.mu.Lock()
	untold := slices.Clone(a.untold)
	a.mu.Unlock()
	for _, m := range untold {
		f(m.sent, m.why)
	}
}

// goneFault is why nothing more comes from a rank, or from any; nil if something may.
func (a *Account) goneFault(from int) *call.Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.goneWhy(from)
}

// goneWhy is goneFault. a.mu is held.
func (a *Account) goneWhy(from int) *call.Fault {
	switch {
	case from != Any && a.gone[from]:
		return call.NewFault(call.Closed, from, "")
	case from == Any && len(a.gone) > 0 && len(a.gone) == len(a.others):
		return call.NewFault(call.Closed, -1, "all other ranks have closed the Comm")
	}
	return nil
}

// peerLeft notes that rank w has closed the Comm, and that all it has sent is in the box, or moves from there.
func (a *Account) peerLeft(w int) {
	a.mu.Lock()
	a.gone[w] = true
	ended := map[pending]*call.Fault{}
	for m := range a.live {
		if why := a.goneWhy(m.waitsFor()); why != nil {
			ended[m] = why
		}
	}
	a.mu.Unlock()
	for m, why := range ended {
		m.forsake(why)
	}
}

// End ends all messages with why, and those that come. Closed says that the rank has closed the Comm;
// else it has failed.
func (a *Account) End(why *call.Fault, closed bool) {
	a.mu.Lock()
	if a.over != nil && !closed {
		a.mu.Unlock()
		return
	}
	a.over, a.closed = why, closed
	var live []pending
	for m := range a.live {
		live = append(live, m)
	}
	a.mu.Unlock()
	for _, m := range live {
		m.expire(why)
	}
	if !closed {
		a.box.shut(a.comm, takenFailed)
		return
	}
	a.box.shut(a.comm, takenClosed)
	a.office.bye(a)
}

// How often an Account that waits looks at deadlines and at who has left. A rank that the control plane
// knows to have left may have sent something that is not read yet: it gets leftGrace.
const (
	watchEvery = 20 * time.Millisecond
	watchIdle  = time.Second
	leftGrace  = time.Second
)

// watch looks after the messages that wait, while there are any and a little longer.
func (a *Account) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	busy, since := time.Now(), map[int]time.Time{}
	for now := range tick.C {
		if !a.office.isOpen() {
			a.End(call.NewFault(call.Closed, -1, "the job has ended here"), false)
		}
		a.mu.Lock()
		if len(a.live) > 0 {
			busy = now
		} else if a.over != nil || now.Sub(busy) > watchIdle {
			a.watching = false
			a.mu.Unlock()
			return
		}
		var late []pending
		asks := map[int]bool{}
		for m := range a.live {
			if t := m.deadline(); t.limit > 0 && now.After(t.until) {
				late = append(late, m)
			}
			asks[m.waitsFor()] = true
		}
		a.mu.Unlock()
		for _, m := range late {
			m.expire(a.late(m.waitsFor(), m.deadline().limit))
		}
		for _, w := range a.others {
			if !asks[w] && !asks[Any] {
				continue
			}
			switch first, seen := since[w]; {
			case !a.left(w):
				delete(since, w)
			case !seen:
				since[w] = now
			case now.Sub(first) > leftGrace:
				a.peerLeft(w)
			}
		}
	}
}

// late is the fault of a message that has taken too long.
func (a *Account) late(w int, limit time.Duration) *call.Fault {
	f := &call.Fault{Code: call.Timeout, Peer: w, Own: true, Err: fmt.Errorf("not done after %v", limit)}
	if w != Any {
		f.Missing = []int{w}
		if err := a.office.unreached(a.self, w); err != nil {
			f.Err = fmt.Errorf("%w: %w", f.Err, err)
		}
	}
	return f
}
