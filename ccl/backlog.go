package ccl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/proc"
)

// backlog are the queued calls of a Comm, in the order in which they were issued and run. It is the
// place of their Works.
type backlog struct {
	c       *Comm
	pending atomic.Bool // issued != ran
	issuing uint64      // 1 while a goroutine issues a call: see Queue.issue
	issues  uint64      // how many have been; of that goroutine

	mu         sync.Mutex // guards what follows, and orders queued work
	issued     uint64     // the last call's ticket; 0 if there was none
	ran        uint64     // that of the last call that has ended
	head, tail *group     // those that have not ended, in order
	executing  bool       // head is under way
	overdue    overdue
	ends       ends
	turn       bell        // rings when one has ended
	idle       *group      // that new ones may use
	own        *HostStream // of the Comm itself: see On
}

// ends say from which call on what is queued has come to nothing.
type ends struct {
	reject             *Error // the first rejected call
	rejectAt, failedAt uint64 // the tickets of the first that was rejected, that failed; 0 for none
	failedCall         call.Record
}

// rejected notes that the call with that ticket is one.
func (e *ends) rejected(ticket uint64, why *Error) {
	if e.reject == nil {
		e.reject, e.rejectAt = why, ticket
	}
}

// failed notes that g is one that has failed.
func (e *ends) failed(g *group) {
	if e.failedAt != 0 {
		return
	}
	e.failedAt, e.failedCall = g.ticket, call.Record{Kind: call.Group, Root: noRoot}
	if g.at != nil {
		e.failedCall = g.at.Record
	} else if len(g.calls) > 0 {
		e.failedCall = g.calls[0].Record
	}
}

// named is e, the failure of the Comm, as the first queued call returns it that has failed with it, if one has.
func (b *backlog) named(e *Error) *Error {
	b.mu.Lock()
	at, k := b.ends.failedAt, b.ends.failedCall
	b.mu.Unlock()
	if at == 0 {
		return e
	}
	return failureIn(b.c, nil, &k)
}

// how says how a queued call ended, if it has.
type how struct {
	done, failed bool
	reject       *Error
	call         call.Record // the first that failed
}

// of is how the call with that ticket ended, where ran is the last that has.
func (e *ends) of(ticket, ran uint64) how {
	switch {
	case e.reject != nil && ticket >= e.rejectAt:
		return how{done: true, reject: e.reject}
	case e.failedAt != 0 && ticket >= e.failedAt:
		return how{done: true, failed: true, call: e.failedCall}
	}
	return how{done: ran >= ticket}
}

// rejected notes that the call with that ticket is one. It fails the Comm, so the program that is
// given its error has been given the Comm's: unless that has failed before. b.mu is held.
func (b *backlog) rejected(ticket uint64, why *Error) {
	if b.ends.reject == nil {
		if why.loss = b.c.life.lost; b.c.life.failure.Load() != nil {
			why.loss = new(loss)
		}
	}
	b.ends.rejected(ticket, why)
}

// failed notes that g has failed with the Comm. b.mu is held.
func (b *backlog) failed(g *group) {
	b.ends.failed(g)
	b.c.life.lost.meet()
}

// add gives g its place. b.mu is held.
func (b *backlog) add(g *group) {
	b.issued++
	g.ticket = b.issued
	if b.tail == nil {
		b.head = g
	} else {
		b.tail.next = g
	}
	b.tail = g
	b.pending.Store(true)
	if g.reject != nil {
		b.rejected(g.ticket, g.reject)
	}
}

// run makes the calls of g when their turn has come, on a stream's goroutine.
func (b *backlog) run(g *group) {
	c := b.c
	if !b.begin(g) {
		return
	}
	var f *call.Fault
	done := false
	defer func() {
		if p := recover(); p != nil {
			panic(p) // which ends the process: nothing is said of that in its name
		}
		if !done { // OnCall has ended this goroutine, with runtime.Goexit
			f = &call.Fault{Code: call.Backend, Peer: c.Rank(),
				Err: errors.New("a function that the call ran, such as OnCall, ended its goroutine")}
			c.eng.Fail(f)
		}
		c.life.runs.Clear()
		b.end(g, f)
	}()
	c.life.runs.Set()
	if g.reject != nil {
		// Peers will wait for a call that never comes.
		f = rejection(c, g.reject)
		c.eng.Fail(f)
	} else {
		ctx, end := limited(c.eng.Control().Site.Job.Background(), g.limit)
		f = c.carryOut(ctx, g.calls)
		end()
		if f != nil && len(g.calls) > 1 {
			g.at = c.eng.Within()
		}
	}
	done = true
}

// rejection is the failure of c by a queued call that was rejected.
func rejection(c *Comm, why *Error) *call.Fault {
	return &call.Fault{Code: call.Mismatch, Peer: c.Rank(), Err: fmt.Errorf("a queued call was rejected: %w", brief{why})}
}

// begin waits for g's turn. It is false where the Comm has failed before.
func (b *backlog) begin(g *group) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn.wait(&b.mu, nil, func() bool { return b.ran == g.ticket-1 || g.ended })
	if b.c.life.failure.Load() != nil {
		b.endAll()
	}
	if g.ended {
		if g.failure = g.reject; g.reject == nil {
			e := *b.c.life.failure.Load()
			e.Op = g.kind().String()
			g.failure = &e
		}
		return false
	}
	b.executing = true
	for _, k := range g.calls {
		b.c.rec.mark(k, Running, b.c.eng.Now())
	}
	return true
}

// end notes how g has ended.
func (b *backlog) end(g *group, f *call.Fault) {
	state := Complete
	if f != nil {
		state = Failed
	}
	b.mu.Lock()
	if f != nil {
		b.failed(g)
	}
	b.executing = false
	b.pop(state)
	if b.c.life.failure.Load() != nil {
		b.endAll()
	}
	b.turn.ring()
	if g.failure = g.reject; g.reject == nil && f != nil {
		g.failure = errorOf(b.c, f)
		g.failure.Op = g.kind().String()
	}
	ticket := g.ticket
	owed, well := b.owed(g)
	b.mu.Unlock()
	b.tell(owed, ticket, well)
}

// pop ends the first queued group. b.mu is held.
func (b *backlog) pop(s State) {
	g := b.head
	if g.reject != nil {
		s = Rejected
	}
	for _, k := range g.calls {
		b.c.rec.mark(k, s, b.c.eng.Now())
	}
	g.ended = true
	if b.head = g.next; b.head == nil {
		b.tail = nil
	}
	g.next = nil
	b.ran = g.ticket
	b.pending.Store(b.ran != b.issued)
}

// endAll ends what is queued, since the Comm has failed; not what is under way, which ends by itself. b.mu is held.
func (b *backlog) endAll() {
	if b.executing {
		return
	}
	if b.head != nil {
		b.failed(b.head)
	}
	for g := b.head; g != nil; g = b.head {
		b.pop(Failed)
		owed, well := b.owed(g)
		b.tell(owed, g.ticket, well)
	}
	b.turn.ring()
}

// overdue looks whether the next queued call comes to run within Options.Timeout: once it runs, the engine looks.
type overdue struct {
	watching bool
	timer    *time.Timer
	ticket   uint64 // of the next call at the last look
	looks    int    // that it has been the next
}

// overdueLooks is how often one looks within Options.Timeout.
const overdueLooks = 8

// watchHead looks after the next queued call. b.mu is held.
func (b *backlog) watchHead() {
	o := &b.overdue
	if b.c.opt.Timeout <= 0 {
		return
	}
	o.watching, o.ticket, o.looks = true, 0, 0
	if step := b.c.opt.Timeout / overdueLooks; o.timer == nil {
		o.timer = time.AfterFunc(step, b.lookAtHead)
	} else {
		o.timer.Reset(step)
	}
}

func (b *backlog) lookAtHead() {
	c := b.c
	o := &b.overdue
	b.mu.Lock()
	switch {
	case b.head == nil:
		o.watching = false
		b.mu.Unlock()
		return
	case b.executing || o.ticket != b.head.ticket:
		o.ticket, o.looks = b.head.ticket, 0
	default:
		o.looks++
	}
	over := o.looks == overdueLooks
	o.timer.Reset(c.opt.Timeout / overdueLooks)
	b.mu.Unlock()
	if over {
		c.eng.Fail(&call.Fault{Code: call.Timeout, Peer: c.Rank(), Own: true,
			Err: fmt.Errorf("a queued call has waited for %v behind other work of its HostStream", c.opt.Timeout)})
	}
}

// until waits until ok, which is called with b.mu held, or ctx ends.
func (b *backlog) until(ctx context.Context, ok func() bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.turn.wait(&b.mu, ctx.Done(), ok) {
		return ctx.Err()
	}
	return nil
}

// wait waits for the queued call with that ticket.
func (b *backlog) wait(ctx context.Context, ticket uint64) error {
	c := b.c
	if proc.Forked() {
		return c.Err()
	}
	var ended how
	err := b.until(ctx, func() bool {
		ended = b.ends.of(ticket, b.ran)
		return ended.done
	})
	switch {
	case err != nil:
		return waitError(err, c)
	case ended.reject != nil:
		return ended.reject
	case ended.failed:
		return c.errorIn(ctx, nil, &ended.call)
	}
	return nil
}

// test reports whether the queued call with that ticket has ended.
func (b *backlog) test(ticket uint64) (bool, error) {
	c := b.c
	if proc.Forked() {
		return true, c.Err()
	}
	b.mu.Lock()
	ended := b.ends.of(ticket, b.ran)
	b.mu.Unlock()
	switch {
	case ended.reject != nil:
		return true, ended.reject
	case ended.failed && !c.life.told.Load(): // OnFailure comes first
		return false, nil
	case ended.failed:
		return true, failureIn(c, nil, &ended.call)
	}
	return ended.done, nil
}

// drained waits until all queued calls have ended, however, or the Comm is closed. Its error is ctx's.
func (b *backlog) drained(ctx context.Context) error {
	return b.until(ctx, func() bool { return b.ran == b.issued || b.c.life.closed.Load() })
}

// owed are the functions that the end of g owes, which tell runs before g's memory serves another.
// b.mu is held.
func (b *backlog) owed(g *group) (fs callbacks, well bool) {
	how := b.ends.of(g.ticket, b.ran)
	return g.done, !how.failed && how.reject == nil
}

// tell runs what the end of a call owes. A failure is told by a goroutine of its own, as OnFailure
// comes first, and the stream's has calls of other Comms to make.
func (b *backlog) tell(fs callbacks, ticket uint64, well bool) {
	switch {
	case len(fs) == 0:
	case well:
		fs.run(nil)
	default:
		go func() { fs.run(b.wait(context.Background(), ticket)) }()
	}
}
