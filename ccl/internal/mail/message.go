package mail

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/op"
)

// message is what a Sending and a Receiving have in common: what they carry, and how they end.
type message struct {
	acct  *Account
	path  Path
	typ   op.Type
	count uint64
	term  term

	mu   sync.Mutex
	mem  []byte // the caller's, which nobody touches once over is set
	over bool
	why  *call.Fault
	done chan struct{}
	then []func()
}

// term is how long a message may take, 0 without a limit, and until when that is, in time lived.
type term struct{ limit, until time.Duration }

// begin makes m one of a's.
func (m *message) begin(a *Account, w What) {
	m.acct, m.path, m.done = a, Path{a.in.Comm, w.Use, w.Tag}, make(chan struct{})
	m.typ, m.count, m.mem = w.Type, uint64(w.Count), w.Mem
	if limit := cmp.Or(w.Within, a.in.Limit); limit > 0 {
		m.term = term{limit, a.office.way.Lived() + limit}
	}
}

// Done is closed when the message has ended.
func (m *message) Done() <-chan struct{} { return m.done }

// Fault is why it came to nothing, nil if it did not. It has ended. Ranks are those of the world.
func (m *message) Fault() *call.Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Told notes that the program has been given the Fault: see Account.Untold.
func (m *message) Told() { m.acct.drop(m) }

// Then has the Account's teller call f when the message has ended.
func (m *message) Then(f func()) {
	m.mu.Lock()
	over := m.over
	if !over {
		m.then = append(m.then, f)
	}
	m.mu.Unlock()
	if over {
		m.acct.calls.tell(f)
	}
}

// isOver reports whether m has ended.
func (m *message) isOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

func (m *message) of() *Account { return m.acct }

func (m *message) deadline() term { return m.term }

// finish ends m, once. before runs while nobody touches the caller's memory any more.
func (m *message) finish(why *call.Fault, before func()) bool {
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return false
	}
	m.over, m.why, m.mem = true, why, nil
	before()
	then := m.then
	m.then = nil
	close(m.done)
	m.mu.Unlock()
	m.acct.calls.tell(then...)
	return true
}

// Sending is a message on its way out.
type Sending struct {
	message
	to     int           // rank of the world
	seq    uint64        // among the messages to that rank; 0 before the receiver is told of it
	eager  bool          // the receiver keeps its payload: it is complete once that is on its way
	number atomic.Uint64 // tells the message from all others while its memory is its own
}

// end ends s; first nobody can take what lies in its memory for the message any more.
func (s *Sending) end(why *call.Fault) (first bool) {
	if first = s.finish(why, func() {
		s.number.Store(0)
		s.acct.keep(&s.message, true, why)
	}); first {
		s.acct.forget(s)
	}
	return first
}

// expire ends s because of something that has happened to the Account, or to the receiver.
func (s *Sending) expire(why *call.Fault) {
	if s.end(why) {
		s.line().revoke(s)
	}
}

// forsake is expire because the receiver has closed the Comm: unless it is there to answer.
func (s *Sending) forsake(why *call.Fault) {
	if !s.line().answers(s) {
		s.expire(why)
	}
}

func (s *Sending) line() *line { return s.acct.office.line(s.acct.in.Self, s.to) }

func (s *Sending) waitsFor() (rank int) { return s.to }

func (s *Sending) lacks() string { return "it has not received the message" }

// Cancel gives s up, unless it is being received.
func (s *Sending) Cancel() { s.line().cancel(s) }

// IsCanceled reports whether f is that Cancel has taken the message back, so that the other rank never had it.
func IsCanceled(f *call.Fault) bool {
	return f != nil && f.Code == call.Canceled && f.Own && f.Err == nil
}

// newNumber is one that no memory has by chance.
func newNumber() uint64 { return proc.Number() | 1 }

// Any is the sender of a Receiving that takes what comes from any rank.
const Any = -1

// Receiving is a message that is waited for. It ends in one of two ways: by what has been matched with it,
// or by giveUp.
type Receiving struct {
	message
	from int // rank of the world, or Any
	at   place
	got  intake
}

// place is where a Receiving is in its Box, whose lock guards it.
type place struct {
	nth    uint64     // of all its receives
	behind *Receiving // see slot
}

// intake is what a Receiving has got. Its lock guards it.
type intake struct {
	source int  // whose message it is, -1 before it is matched
	moves  bool // it is matched, and its payload is on the way; the Box's lock guards this as well
	filled int  // so much of that is here
}

// takes reports whether a message of that rank is for r.
func (r *Receiving) takes(from int) bool { return r.from == Any || r.from == from }

// end ends r, for which no message can come any more: it has one, or was withdrawn.
func (r *Receiving) end(why *call.Fault) (first bool) {
	moved := false
	if first = r.finish(why, func() { moved = r.got.moves; r.acct.keep(&r.message, false, why) }); first {
		if moved {
			r.acct.box.landed(r)
		}
		r.acct.forget(r)
	}
	return first
}

// received ends r, all of which is there, unless it is given up by now: well says that it was not when the
// last of it came. It returns what the sender is told.
func (r *Receiving) received(well bool) (code uint8) {
	if well && r.end(nil) {
		return takenWell
	}
	return r.acct.refusal()
}

// giveUp withdraws r and, if it has, ends it: no message whose sender takes it for received goes with it.
// One that is being received goes on, unless moving is set: its sender hears of that, and has no success.
func (r *Receiving) giveUp(why *call.Fault, moving bool) {
	if inject.Wrong("mail.expire") { // what is given to it meanwhile is lost
		r.end(why)
		inject.Yield()
	}
	if r.acct.box.withdraw(r, moving) {
		r.end(why)
	}
}

// expire gives r up because of something that has happened to the Account, or because of its limit.
func (r *Receiving) expire(why *call.Fault) { r.giveUp(why, true) }

// forsake gives r up because the sender has closed the Comm.
func (r *Receiving) forsake(why *call.Fault) { r.giveUp(why, false) }

// Cancel gives r up, unless a message has been matched with it.
func (r *Receiving) Cancel() { r.giveUp(&call.Fault{Code: call.Canceled, Peer: -1, Own: true}, false) }

func (r *Receiving) waitsFor() (rank int) { return r.from }

func (r *Receiving) lacks() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.got.moves:
		return "its message has not come whole"
	case r.from == Any:
		return "no rank has sent such a message"
	}
	return "it has sent no such message"
}

// again has r wait as before it was matched, since the sender has given the message up.
func (r *Receiving) again() {
	if r.acct.box.undo(r) {
		r.acct.posted(r)
		return
	}
	const why = "the sender gave the message up while it came, and a later one has been received"
	r.end(call.NewFault(call.Canceled, r.Source(), why))
}

// Source is the rank of the world whose message it is, -1 while none has come.
func (r *Receiving) Source() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.source
}

// fill puts the next n bytes in place, by put. It reports whether somebody still wants them.
func (r *Receiving) fill(n int, put func(dst []byte) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || n > len(r.mem)-r.got.filled || !put(r.mem[r.got.filled:r.got.filled+n]) {
		return false
	}
	r.got.filled += n
	return true
}

// copyIn is fill with what is in b.
func (r *Receiving) copyIn(b []byte) bool {
	return r.fill(len(b), func(dst []byte) bool { copy(dst, b); return true })
}

// whole reports whether all of it is there.
func (r *Receiving) whole() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over || r.got.filled == len(r.mem)
}
