package mail

import (
	"context"
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
	in     Membership
	calls  teller
	ctx    context.Context // ends with the Account
	stop   context.CancelFunc
	cuts   sync.WaitGroup // see severed

	mu       sync.Mutex
	live     map[pending]bool
	over     *call.Fault
	closed   bool         // over is that the rank has closed the Comm
	untold   []failed     // see Untold
	gone     map[int]bool // ranks that have closed the Comm, and from which nothing more can come
	watching bool
	silent   bool // all it has sent has ended, and it sends no more: see Office.bye
}

// Membership is a rank in a Comm, as its mail knows it. Ranks are those of the world.
type Membership struct {
	Comm   uint64
	Self   int
	Others []int         // the other ranks of the Comm
	Limit  time.Duration // how long a message may take, 0 for any time
	// Left reports whether a rank is known to have closed the Comm, or seems to have.
	Left func(w int) bool
	// Sure reports whether a rank of which Left has said so for leftGrace has closed the Comm. It may take a
	// moment. nil: it has.
	Sure func(w int) bool
	// Severed is told why messages from rank w, or to it, may be lost, and reports whether w has closed the
	// Comm. If not, it has the Comm fail: for that reason, where there is no better one. It may take a
	// while, unless ctx ends.
	Severed func(ctx context.Context, w int, why error) (left bool)
}

// pending is a Sending or a Receiving that has not ended.
type pending interface {
	expire(why *call.Fault)
	forsake(why *call.Fault)
	of() *Account
	deadline() term
	waitsFor() int
	lacks() string // what a rank has not done while the message had time
}

// Open returns the mail of a rank of this process in a Comm.
func (o *Office) Open(in Membership) *Account {
	a := &Account{office: o, box: o.box(in.Self), in: in}
	a.live, a.gone = map[pending]bool{}, map[int]bool{}
	a.ctx, a.stop = context.WithCancel(o.ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accounts[member{in.Comm, in.Self}] = a
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
	s.line().send(s)
	return s
}

// Recv receives w, which rank from of the world sends, or any.
func (a *Account) Recv(w What, from int) *Receiving {
	r := &Receiving{from: from, got: intake{source: -1}}
	r.begin(a, w)
	if why := a.take(r, Any); why != nil {
		r.end(why)
		return r
	}
	a.box.post(r)
	a.posted(r)
	return r
}

// posted ends r, which has come to the box, if nothing can come for it any more: what ended the Comm, or
// had a rank leave it, may have looked at the box before r was there. It does what that would have done: the
// end of the Comm gives up a payload that is on its way, too.
func (a *Account) posted(r *Receiving) {
	a.mu.Lock()
	over, gone := a.over, a.goneWhy(r.from)
	a.mu.Unlock()
	switch {
	case over != nil:
		r.expire(over)
	case gone != nil:
		r.forsake(gone)
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

// keep keeps m, a user's message that ends with why, until the program is told: unless that is nil,
// or the program has given m up, by Cancel, or by closing the Comm while it waited for a message.
func (a *Account) keep(m *message, sent bool, why *call.Fault) {
	if why == nil || m.path.Use != Links {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	givenUp := IsCanceled(why) || a.closed && why == a.over && !sent
	if !givenUp && len(a.untold) < untoldMost {
		a.untold = append(a.untold, failed{m, sent, why})
	}
}

func (a *Account) drop(m *message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.untold = slices.DeleteFunc(a.untold, func(f failed) bool { return f.of == m })
}

// Untold calls f with each failed message, up to a number, of which the program has not been told:
// whether it was sent, and why it has failed.
func (a *Account) Untold(f func(sent bool, why *call.Fault)) {
	a.mu.Lock()
	untold := slices.Clone(a.untold)
	a.mu.Unlock()
	for _, m := range untold {
		f(m.sent, m.why)
	}
}

// goneWhy is why nothing more comes from a rank, or from any; nil if something may. a.mu is held.
func (a *Account) goneWhy(from int) *call.Fault {
	switch {
	case from != Any && a.gone[from]:
		return call.NewFault(call.Closed, from, "")
	case from == Any && len(a.gone) > 0 && len(a.gone) == len(a.in.Others):
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
	a.stop()
	for _, m := range live {
		m.expire(why)
	}
	a.office.Shut(a.in.Comm, a.in.Self, closed)
	if closed {
		a.office.bye(a)
		a.cuts.Wait()
	}
}

// isSilent reports whether a has closed the Comm, and ended all that it has sent there.
func (a *Account) isSilent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.silent
}

// severed ends those messages to or from rank w, since a connection with it broke, for that reason: they
// may be lost, or ones before them. If w has closed the Comm they were to end. Else nothing else would make
// the loss known, and the Comm fails for it.
func (a *Account) severed(ms []pending, w int, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return
	}
	a.cuts.Go(func() {
		if !a.in.Severed(a.ctx, w, why) {
			return
		}
		for _, m := range ms {
			m.expire(call.NewFault(call.Closed, w, ""))
		}
	})
}

// refusal is what the sender of a message is told that is not received although it was matched.
func (a *Account) refusal() uint8 {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over == nil:
		return takenLeft
	case a.over.Code == call.Closed:
		return takenClosed
	}
	return takenFailed
}

// How often an Account that waits looks at deadlines and at who has left. A rank that the control plane
// knows to have left may have sent something that is not read yet: it gets leftGrace. So does one that only
// seems to have left, before it is looked at more closely.
const (
	watchEvery = 20 * time.Millisecond
	watchIdle  = time.Second
	leftGrace  = time.Second
)

// dueSoon is for how long before a message's deadline a pause of the process counts as little as the clock
// can have it.
const dueSoon = 2 * time.Second

// watch looks after the messages that wait, while there are any and a little longer. Limits are counted in
// time lived.
func (a *Account) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	busy, since := a.office.way.Lived(), map[int]time.Duration{}
	for range tick.C {
		if !a.office.isOpen() {
			a.End(call.NewFault(call.Closed, -1, "the job has ended here"), false)
		}
		now := a.office.way.Lived()
		a.mu.Lock()
		if len(a.live) > 0 {
			busy = now
		} else if a.over != nil || now-busy > watchIdle {
			a.watching = false
			a.mu.Unlock()
			return
		}
		var late []pending
		soon := false
		asks := map[int]bool{}
		for m := range a.live {
			t := m.deadline()
			if t.limit > 0 && now > t.until {
				late = append(late, m)
			}
			soon = soon || t.limit > 0 && now > t.until-dueSoon
			asks[m.waitsFor()] = true
		}
		a.mu.Unlock()
		if soon {
			a.office.way.Attend()
		}
		for _, m := range late {
			m.expire(a.late(m))
		}
		for _, w := range a.in.Others {
			if !asks[w] && !asks[Any] {
				continue
			}
			switch first, seen := since[w]; {
			case !a.in.Left(w):
				delete(since, w)
			case !seen:
				since[w] = now
			case now-first <= leftGrace:
			case a.in.Sure == nil || a.in.Sure(w):
				a.peerLeft(w)
			default:
				since[w] = now
			}
		}
	}
}

// late is the fault of a message that has taken too long.
func (a *Account) late(m pending) *call.Fault {
	w, limit := m.waitsFor(), m.deadline().limit
	f := &call.Fault{Code: call.Timeout, Peer: w, Own: true, Err: fmt.Errorf("%s within %v", m.lacks(), limit)}
	if w != Any {
		f.Missing = []int{w}
		if err := a.office.unreached(a.in.Self, w); err != nil {
			f.Err = fmt.Errorf("%w: %w", f.Err, err)
		}
	}
	return f
}
