package links

import (
	"context"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// messages are those of a step, or of point-to-point calls: all of them move at once.
type messages struct {
	rank  *plane.Member
	mem   *reach.Reach
	ends  *ends
	tx    []*sender
	rx    []*receiver
	wire  []byte // see received
	waits tcp.Waits
}

// Begin forgets the messages of the last step. Their memory is used again.
func (c *messages) Begin() { c.tx, c.rx = c.tx[:0], c.rx[:0] }

// Pending reports whether messages have been added since Begin.
func (c *messages) Pending() bool { return len(c.tx)+len(c.rx) > 0 }

// oneMore is a new element of a list, or one that a step before has used.
func oneMore[T sender | receiver](list *[]*T) *T {
	n := len(*list)
	if n == cap(*list) {
		*list = append(*list, nil)
	}
	if *list = (*list)[:n+1]; (*list)[n] == nil {
		(*list)[n] = new(T)
	}
	return (*list)[n]
}

func (c *messages) newSender() *sender     { return oneMore(&c.tx) }
func (c *messages) newReceiver() *receiver { return oneMore(&c.rx) }

// Move runs all messages since Begin to their end.
func (c *messages) Move(ctx context.Context) *call.Fault {
	var w patience
	c.spread()
	for {
		left, moved := 0, false
		for _, s := range c.tx {
			if s.done {
				continue
			}
			m, f := c.progressOut(ctx, s)
			if f != nil {
				return f
			}
			moved = moved || m
			if !s.done {
				left++
			}
		}
		for i := 0; i < len(c.rx); i++ { // it may add receivers
			r := c.rx[i]
			if r.done {
				continue
			}
			m, f := c.progressIn(ctx, r)
			if f == nil {
				f = c.gather(ctx, r)
			}
			if f != nil {
				return f
			}
			moved = moved || m
			if !r.done {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if moved {
			if f := w.moved(ctx, c.ends); f != nil {
				return f
			}
			continue
		}
		w.wait.Looks++
		remote, only := c.remote()
		if w.wait.Looks < c.looks(remote) {
			continue
		}
		w.wait.Looks, w.wait.Several, w.wait.Remote, w.wait.Arrivals, w.wait.Awaited = 0, left > 1, remote, nil, c
		if only {
			w.wait.Arrivals = c
		}
		if f := c.rank.Pause(ctx, &w.wait, c.awaited()); f != nil {
			return f
		}
	}
}

// Await sleeps until a connection can take or give something of a message whose turn it is, but no
// longer than d. It returns false, at once, if it cannot.
func (c *messages) Await(d time.Duration) bool {
	for _, s := range c.tx {
		if s.mayMove() {
			c.waits.Add(s.l.conn, true)
		}
	}
	for _, r := range c.rx {
		if r.mayMove() {
			c.waits.Add(r.l.conn, false)
		}
	}
	return c.waits.Wait(d)
}

// Moved is how many bytes of the messages have moved.
func (c *messages) Moved() (m plane.Moved) {
	for _, s := range c.tx {
		m.Done += int64(s.moved())
		m.Of += int64(max(len(s.body), s.moved()))
	}
	for _, r := range c.rx {
		m.Done += int64(r.in)
		m.Of += int64(len(r.to))
	}
	return m
}

// patience is how a loop that moves messages waits while none moves.
type patience struct {
	wait plane.Waiter
	laps int // in which something has moved
}

// moved begins the wait anew. A call that always moves must notice its end, too: the fault is why it must end.
func (w *patience) moved(ctx context.Context, c *ends) *call.Fault {
	if w.wait.Nap > 0 || c.rank.Current.Slept() && w.laps&63 == 0 {
		c.rank.NoteProgress()
	}
	w.wait = plane.Waiter{}
	if w.laps++; w.laps&4095 == 0 {
		return c.rank.Interrupted(ctx)
	}
	return nil
}

// Peers appends to list the ranks that messages wait for, until it is full. A rank of this host of
// which something has come is in its call.
func (c *messages) Peers(list []int32) []int32 {
	for _, r := range c.rx {
		if !r.done && (r.l.conn != nil || r.in == 0) && !slices.Contains(list, int32(r.l.peer)) && len(list) < cap(list) {
			list = append(list, int32(r.l.peer))
		}
	}
	for _, s := range c.tx {
		if !s.done && (s.l.conn != nil || s.moved() == 0) && !slices.Contains(list, int32(s.l.peer)) &&
			len(list) < cap(list) {
			list = append(list, int32(s.l.peer))
		}
	}
	return list
}

// unfinished calls f for each message that is not done, what is received first, until it returns false.
func (c *messages) unfinished(f func(l *Link, of *call.Call) bool) {
	for _, r := range c.rx {
		if !r.done && !f(r.l, r.of) {
			return
		}
	}
	for _, s := range c.tx {
		if !s.done && !f(s.l, s.of) {
			return
		}
	}
}

// remote reports whether messages that are not done go to or come from other hosts: some of them, and all.
func (c *messages) remote() (some, only bool) {
	only = true
	c.unfinished(func(l *Link, _ *call.Call) bool {
		some, only = some || l.conn != nil, only && l.conn != nil
		return true
	})
	return some, some && only
}

// looks is how often a rank looks at the messages of a step before it gives way.
func (c *messages) looks(remote bool) int {
	if remote {
		return tuning.ConnLooks
	}
	return c.rank.Share.Spins / 16
}

// Awaited is the point-to-point call of the first unfinished message, which awaited names the rank
// of; nil if there is none.
func (c *messages) Awaited() (k *call.Call) {
	c.unfinished(func(_ *Link, of *call.Call) bool { k = of; return of == nil })
	return k
}

// awaited is the rank the first unfinished message waits for.
func (c *messages) awaited() int {
	peer := -1
	c.unfinished(func(l *Link, _ *call.Call) bool { peer = l.peer; return false })
	return peer
}
