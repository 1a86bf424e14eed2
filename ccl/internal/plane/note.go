package plane

import (
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// note is what a Comm tells the monitor of the call under way, and what the monitor keeps of it.
type note struct {
	sync.Mutex
	asleep bool
	queued bool // it is made on the goroutine of a Stream
	call   call.Record
	calls  uint64
	on     waitedFor
	pair   pairNote
	since  int64 // coarse, as all times here

	looked      uint64 // the calls whose order has been compared: 1 + their number
	brief       uint64 // and told
	published   status.Status
	publishedAt int64
	heardAt     int64 // when another rank was last heard to wait; 0: never
	warned      int64 // 1 + the beginning of the call that was warned of
	atEnd       *status.Status
}

// waitedFor is which ranks a call waits for.
type waitedFor struct {
	peer   int32 // one of them; -1: several, or none is known
	awaits [event.MissingMost]int32
	n      int // of awaits; 0 where they cannot be listed
}

// pairNote is what a note says of a call between two ranks.
type pairNote struct {
	to      int32 // of a SendRecv; else -1
	several bool  // the call is several messages
	moved   Moved // by it, when it last went to sleep
}

// InCall reports whether a call is under way. Only the goroutine that makes the calls may ask, when
// it is in no call: it finds that another goroutine is in a call, which has noted the call anyway.
// As with Go's maps there is no lock, so not all such goroutines are found.
func (c *Standing) InCall() bool { return c.current.running != nil || c.note.asleep }

// Sleeping is the call that sleeps, if one does.
func (c *Standing) Sleeping() (call.Record, bool) {
	c.note.Lock()
	defer c.note.Unlock()
	return c.note.call, c.note.asleep
}

// EndSleep notes that the sleep of the call under way has ended.
func (c *Member) EndSleep() {
	c.Unpark()
	c.Share.Local.Waits(c.Share.Me).Store(0)
	n := &c.Standing.note
	n.Lock()
	n.asleep = false
	told := n.published.Doing == status.Waits
	n.Unlock()
	if told { // the others are to hear soon that this rank does not wait any more
		c.Site.Job.Time.Coarse.WakeMonitor()
	}
}

// NoteProgress notes that the sleeping call goes on: it has waited only since now.
func (c *Member) NoteProgress() {
	n := &c.Standing.note
	n.Lock()
	n.since = c.Site.Job.Clock()
	n.Unlock()
}

// list notes which ranks w is for, where these can be listed.
func (o *waitedFor) list(w *Waiter) {
	if o.n = 0; w.Awaited != nil {
		o.n = len(w.Awaited.Peers(o.awaits[:0]))
	}
}

// status is where this rank stands now. c.note is locked; it is false once the Comm's memory is gone.
func (c *Standing) status(now int64) (s status.Status, since int64, ok bool) {
	n := &c.note
	s = status.Status{Comm: c.group.ID(), Rank: int32(c.group.Rank()), Size: int32(c.group.Size()),
		World: int32(c.group.World(c.group.Rank())),
		Node:  int32(c.Site.Here.Node), Peer: -1, To: -1, For: -1, Failed: c.fate.cause.Load() != nil}
	if !c.share.Look(func() {
		calls, word := c.share.Local.Collective(c.share.Me)
		s.Calls, s.Hash = calls, uint32(word)
		if last, have := c.share.Local.Made(c.share.Me, calls); have {
			s.Call = last
		}
	}) {
		return s, 0, false
	}
	began := c.Elsewhere.foreignSince()
	switch {
	case began != 0:
		s.Doing, since = status.Waits, int64(began&^ForeignCall)
	case n.asleep && n.calls == s.Calls:
		s.Doing, s.Peer, since = status.Waits, n.on.peer, n.since
		if n.call.Kind.Pairwise() {
			s.Call, s.To, s.Several = n.call, n.pair.to, n.pair.several
		}
	case c.hooks.Busy != nil && c.hooks.Busy():
		s.Doing = status.AtWork
	}
	if s.Doing == status.Waits {
		s.Waited = uint32(max(now-since, 0) / int64(time.Millisecond))
	}
	return s, since, true
}

// foreignSince is ForeignCall and when the call under way elsewhere began, or the device came to a stand; 0 if neither.
func (c *Elsewhere) foreignSince() uint64 {
	if began := c.Foreign.Load(); began != 0 {
		return began
	}
	return c.stands.Load()
}

// Awaited are the ranks that a wait is for.
type Awaited interface {
	// Peers appends to list those of whom nothing has come yet, until it is full.
	Peers(list []int32) []int32
}
