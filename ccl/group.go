package ccl

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
)

// group is what is issued as one: a call, or those of a Group. A Comm uses the memory of those that have succeeded
// again, so that issuing allocates nothing.
type group struct {
	c      *Comm
	ticket uint64 // its place among the queued calls of its Comm; 0 while it is collected
	next   *group // in that order; among the idle ones, the next of them
	use    uint64 // how many groups have had this memory: what a Queue or Work of an earlier one says is over
	ended  bool   // it has run, or never will
	over   bool   // Group has returned: it takes no more calls
	calls  []*call.Call
	at     *call.Call   // the one in which it failed, where that is known
	made   []*call.Call // there were for a group in this memory: calls is the first of them
	counts []int        // those of calls; the caller may use its own again
	reject *Error
	// why it failed, for what Do runs later on its stream; the stream's goroutine writes and reads it
	failure *Error
	limit   time.Duration // of Queue.Within; 0: none
	done    callbacks     // of Work.OnDone
	how     engine.How    // how those on a device are handed over
}

// newGroup is a group without calls.
func (b *backlog) newGroup() *group {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.idle
	if g == nil {
		return &group{c: b.c, use: 1}
	}
	b.idle, g.next = g.next, nil
	g.use++
	g.ticket, g.ended, g.over, g.limit = 0, false, false, 0
	return g
}

// groupOf is the group that q collects, or a new one for a call alone.
func (b *backlog) groupOf(q *Queue) *group {
	if q.group != nil {
		return q.group
	}
	return b.newGroup()
}

// free gives back the memory of a group that nothing runs any more. What has failed is kept, since
// Works may ask for it.
func (g *group) free() {
	if g.failure != nil || g.reject != nil {
		return
	}
	for _, k := range g.calls {
		k.Forget()
	}
	clear(g.done)
	g.calls, g.counts, g.done = g.calls[:0], g.counts[:0], g.done[:0]
	b := &g.c.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	g.next, b.idle = b.idle, g
}

// add adds a call that a asks for, which is to be described. It holds what an earlier one in its
// place did. The counts of a become g's own: the caller may use its own again.
func (g *group) add(a *args) *call.Call {
	a.dc, a.sc = g.keep(a.dc), g.keep(a.sc)
	n := len(g.calls)
	if n == len(g.made) {
		g.made = append(g.made, new(call.Call))
	}
	g.calls = g.made[:n+1]
	return g.made[n]
}

// drop takes back the call that was added last, and g's memory where g was for that call alone.
func (g *group) drop(whole bool) {
	g.calls = g.calls[:len(g.calls)-1]
	if whole {
		g.free()
	}
}

// begin makes g a device's new group, of no calls, in the memory of its last.
func (g *group) begin() {
	g.use++
	g.over, g.how, g.counts, g.calls = false, 0, g.counts[:0], g.calls[:0]
}

// keep copies counts into g's memory.
func (g *group) keep(counts []int) []int {
	if counts == nil {
		return nil
	}
	n := len(g.counts)
	g.counts = append(g.counts, counts...)
	return g.counts[n:len(g.counts):len(g.counts)]
}

// kind is that of the one call of g, or Group.
func (g *group) kind() call.Kind {
	if len(g.calls) == 1 {
		return g.calls[0].Kind
	}
	return call.Group
}

// wait waits for the calls of g, as one of its Works does.
func (g *group) wait(ctx context.Context, use uint64) error {
	ticket, err := g.issued(use)
	if err != nil || ticket == 0 {
		return err
	}
	return g.c.backlog.wait(ctx, ticket)
}

// test reports whether the calls of g have ended.
func (g *group) test(use uint64) (bool, error) {
	ticket, err := g.issued(use)
	if err != nil || ticket == 0 {
		return true, err
	}
	return g.c.backlog.test(ticket)
}

// issued is g's place in the order, which it gets when Group returns; 0 if it has succeeded long ago.
func (g *group) issued(use uint64) (uint64, error) {
	g.c.backlog.mu.Lock()
	defer g.c.backlog.mu.Unlock()
	switch {
	case g.use != use:
		return 0, nil
	case g.ticket != 0:
		return g.ticket, nil
	case g.reject != nil:
		return 0, g.reject
	}
	return 0, g.c.refuse("Group", ErrArgument, errors.New("a Work of a Group is valid only after Group has returned"))
}
