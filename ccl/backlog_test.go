package ccl

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// From the first rejected call on all are rejected, from the first failed one on all have failed, and what was before
// them has its own end.
func TestEnds(t *testing.T) {
	refused := &Error{Code: ErrArgument}
	var e ends
	assert.Equal(t, how{done: true}, e.of(3, 3))
	assert.Equal(t, how{}, e.of(4, 3))
	first := &group{ticket: 5, calls: []*call.Call{{Head: op.Head{Record: call.Record{Seq: 9, Kind: call.Send}}}}}
	e.failed(first)
	e.failed(&group{ticket: 6})
	e.rejected(7, refused)
	e.rejected(8, &Error{Code: ErrClosed})
	for ticket, want := range map[uint64]how{
		3: {done: true},
		4: {},
		5: {done: true, failed: true, call: first.calls[0].Record},
		6: {done: true, failed: true, call: first.calls[0].Record},
		7: {done: true, reject: refused},
		9: {done: true, reject: refused},
	} {
		assert.Equal(t, want, e.of(ticket, 3), "ticket %d", ticket)
	}
	var g ends
	g.failed(&group{ticket: 1}) // of no calls
	assert.Equal(t, how{done: true, failed: true, call: call.Record{Kind: call.Group, Root: -1}}, g.of(1, 0))
}

// Groups have tickets in the order in which they are added, and end in it; a rejected one is noted at once. A failure ends
// all of them, unless one is under way.
func TestBacklog(t *testing.T) {
	b := &new(Comm).backlog
	b.c = new(Comm)
	refused := &Error{Code: ErrArgument}
	one, two, three := &group{}, &group{reject: refused}, &group{}
	for i, g := range []*group{one, two, three} {
		b.add(g)
		assert.EqualValues(t, i+1, g.ticket)
		assert.True(t, b.pending.Load())
	}
	assert.Equal(t, []*group{one, two, three}, []*group{b.head, b.head.next, b.tail})
	assert.Equal(t, how{done: true, reject: refused}, b.ends.of(2, b.ran))
	b.pop(Complete)
	assert.True(t, one.ended)
	assert.EqualValues(t, 1, b.ran)
	assert.True(t, b.pending.Load())

	b.executing = true
	b.endAll()
	assert.False(t, two.ended, "it is under way")
	b.executing = false
	b.endAll()
	assert.True(t, two.ended)
	assert.True(t, three.ended)
	assert.Nil(t, b.head)
	assert.Nil(t, b.tail)
	assert.EqualValues(t, 3, b.ran)
	assert.False(t, b.pending.Load())
	assert.EqualValues(t, 2, b.ends.failedAt)
}

// drained ends with the queue, with the Comm or with its context.
func TestBacklogDrained(t *testing.T) {
	c := new(Comm)
	b := &c.backlog
	b.c = c
	require.NoError(t, b.drained(t.Context()))
	b.add(&group{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, b.drained(ctx))
	over := make(chan error)
	go func() { over <- b.drained(t.Context()) }()
	b.mu.Lock()
	b.pop(Complete)
	b.turn.ring()
	b.mu.Unlock()
	require.NoError(t, <-over)
	b.add(&group{})
	c.life.closed.Store(true)
	require.NoError(t, b.drained(t.Context()))
}

// Without a Timeout nobody looks after the next call; with one it is looked after from the first on.
func TestBacklogWatchesHead(t *testing.T) {
	for timeout, want := range map[time.Duration]bool{0: false, -1: false, defaultTimeout: true} {
		c := &Comm{opt: settings{Options: Options{Timeout: timeout}}}
		c.backlog.c = c
		c.backlog.watchHead()
		assert.Equal(t, want, c.backlog.overdue.watching, timeout)
		if want {
			require.True(t, c.backlog.overdue.timer.Stop())
			c.backlog.lookAtHead() // nothing is queued
			assert.False(t, c.backlog.overdue.watching)
		}
	}
}
