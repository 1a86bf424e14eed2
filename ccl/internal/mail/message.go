package mail

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
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

// term is how long a message may take, and until when that is: 0 without a limit.
type term struct {
	limit time.Duration
	until time.Time
}

// begin makes m one of a's.
func (m *message) begin(a *Account, w What) {
	m.acct, m.path, m.typ, m.count, m.mem, m.done = a, Path{a.comm, w.Use, w.Tag}, w.Type, uint64(w.Count), w.Mem, make(chan struct{})
	if limit := cmp.Or(w.Within, a.limit); limit > 0 {
		m.term = term{limit, time.Now().Add(limit)}
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

// Then calls f when the message has ended, on the goroutine that ends it, or at once.
func (m *message) Then(f func()) {
	m.mu.Lock()
	if !m.over {
		m.then = append(m.then, f)
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	f()
}

// isOver reports whether m has ended.
func (m *message) isOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

// lostGrace is how long what a stream has cut off waits for the reason: that the Comm has failed, since a rank is lost, or
// that the other rank has closed it.
const lostGrace = time.Second

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
	for _, f := range then {
		f()
	}
	return true
}

// Sending is a message on its way out.
type Sending struct {
	message
	to     int // ranks of the world
	seq    uint64
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
		s.acct.office.line(s.acct.self, s.to).revoke(s)
	}
}

// forsake is expire because the receiver has closed the Comm: unless it is there to answer.
func (s *Sending) forsake(why *call.Fault) {
	if !s.acct.office.line(s.acct.self, s.to).answers() {
		s.expire(why)
	}
}

func (s *Sending) waitsFor() (rank int) { return s.to }

// Cancel gives s up, unless it is being received.
func (s *Sending) Cancel() { s.acct.office.line(s.acct.self, s.to).cancel(s) }

// IsCanceled reports whether f is that Cancel has taken the message back, so that the other rank never had it.
func IsCanceled(f *call.Fault) bool {
	return f != nil && f.Code == call.Canceled && f.Own && f.Err == nil
}

// newNumber is one that no memory has by chance.
func newNumber() uint64 { return rand.Uint64() | 1 }

// Any is the sender of a Receiving that takes what comes from any rank.
const Any = -1

// Receiving is a message that is waited for.
type Receiving struct {
	message
	from   int // rank of the world, or Any
	source int // whose message it is, once it is matched
	filled int
}

func (r *Receiving) end(why *call.Fault) {
	if r.finish(why, func() { r.acct.keep(&r.message, false, why) }) {
		r.acct.forget(r)
	}
}

// expire ends r, and takes it out of the box then: see Box.post.
func (r *Receiving) expire(why *call.Fault) {
	r.end(why)
	r.acct.box.withdraw(r)
}

// forsake is expire because the sender has closed the Comm: unless its message is here.
func (r *Receiving) forsake(why *call.Fault) {
	if r.acct.box.withdraw(r) {
		r.end(why)
	}
}

func (r *Receiving) waitsFor() (rank int) { return r.from }

// Cancel gives r up, unless a message has been matched with it.
func (r *Receiving) Cancel() {
	if r.acct.box.withdraw(r) {
		r.end(&call.Fault{Code: call.Canceled, Peer: -1, Own: true})
	}
}

// again has r wait as before it was matched, since the sender has given the message up.
func (r *Receiving) again() {
	r.mu.Lock()
	r.filled, r.source = 0, -1
	r.mu.Unlock()
	r.acct.post(r, true)
}

// Source is the rank of the world whose message it is, -1 while none has come.
func (r *Receiving) Source() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source
}

// fill puts the next n bytes in place, by put. It reports whether somebody still wants them.
func (r *Receiving) fill(n int, put func(dst []byte) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || n > len(r.mem)-r.filled || !put(r.mem[r.filled:r.filled+n]) {
		return false
	}
	r.filled += n
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
	return r.over || r.filled == len(r.mem)
}
