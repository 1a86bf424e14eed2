package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// OnDone calls f once when the call is complete or has failed, with what Wait would return. The
// goroutine that ends the call runs f, so a call costs no goroutine more: f must be short and must
// not wait for calls on the same stream. If the call has ended, f runs at once, on the goroutine of
// OnDone. After a failure of the Comm, f runs once OnFailure has returned. On a device f has a
// goroutine of its own, which waits. Several functions of one call run in the order of OnDone.
func (w Work) OnDone(f func(error)) {
	switch {
	case f == nil:
	case w.err != nil:
		callBack(f, give(w.err))
	case w.at != nil:
		w.at.onDone(w.seq, f)
	default:
		callBack(f, nil)
	}
}

// callbacks are the functions of OnDone, in order.
type callbacks []func(error)

// onDone has the end of the queued call with that ticket run f, or runs f at once.
func (b *backlog) onDone(ticket uint64, f func(error)) {
	if proc.Forked() {
		callBack(f, b.c.Err())
		return
	}
	b.mu.Lock()
	if !b.ends.of(ticket, b.ran).done {
		g := b.tail // of which the question mostly is
		if g == nil || g.ticket != ticket {
			for g = b.head; g != nil && g.ticket != ticket; g = g.next {
			}
		}
		if g != nil {
			g.done = append(g.done, f)
			b.mu.Unlock()
			return
		}
	}
	b.mu.Unlock()
	callBack(f, give(b.wait(context.Background(), ticket)))
}

func (g *group) onDone(use uint64, f func(error)) {
	ticket, err := g.issued(use)
	if err != nil || ticket == 0 {
		callBack(f, give(err))
		return
	}
	g.c.backlog.onDone(ticket, f)
}

func (s *HostStream) onDone(seq uint64, f func(error)) {
	s.mu.Lock()
	if s.ran < seq {
		if s.after == nil {
			s.after = map[uint64]callbacks{}
		}
		s.after[seq] = append(s.after[seq], f)
		s.mu.Unlock()
		return
	}
	err := s.result(seq)
	s.mu.Unlock()
	callBack(f, give(err))
}

func (d *deviceStream) onDone(seq uint64, f func(error)) {
	go func() { callBack(f, give(d.wait(context.Background(), seq))) }()
}
