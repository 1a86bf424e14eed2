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

// run calls all of them, also if one ends its goroutine (runtime.Goexit).
func (fs callbacks) run(err error) {
	if len(fs) == 0 {
		return
	}
	defer fs[1:].run(err)
	callBack(fs[0], give(err))
}

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

// owed takes the functions that the end of task seq owes, with its error. s.mu is held.
func (s *HostStream) owed(seq uint64) (fs callbacks, err error) {
	if fs = s.after[seq]; fs != nil {
		delete(s.after, seq)
		err = s.result(seq)
	}
	return fs, err
}

func (d *deviceStream) onDone(seq uint64, f func(error)) {
	go func() { callBack(f, give(d.wait(context.Background(), seq))) }()
}
