package campaign

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A letter is one message of a scene, which all ranks know.
type letter struct {
	from, to, tag, count int
	salt                 uint64
}

// anyTag is received from AnySource; racingTag by receives that end while the message arrives. On the others nothing comes.
const (
	anyTag    = 3
	racingTag = 4
	idleTag   = 5
)

// messages sends letters between random ranks, with random tags and sizes, each received once and in order.
func (s *scene) messages() error {
	n, me := s.c.Size(), s.c.Rank()
	var letters []letter
	for range 1 + s.rnd.IntN(24) {
		l := letter{s.rnd.IntN(n), s.rnd.IntN(n), s.rnd.IntN(anyTag + 1), 0, s.rnd.Uint64()}
		switch s.rnd.IntN(4) {
		case 0:
			l.count = s.rnd.IntN(3)
		case 1, 2:
			l.count = s.rnd.IntN(2000)
		default:
			l.count = s.rnd.IntN(s.r.p.bytes/8 + 1)
		}
		if l.tag == anyTag { // a receive from anybody does not know whose it gets, so all are as long
			l.count = 64 << (l.to % 8)
		}
		letters = append(letters, l)
	}
	cancel := s.cancelled()
	type pending struct {
		m    ccl.Message
		l    letter
		p    piece
		sent bool
	}
	var all []pending
	send := func(l letter) {
		p := newPiece(s.own, s.arena, 4*l.count, 4)
		l.fill(sliceOf[uint32](p))
		all = append(all, pending{ccl.LinkTo(s.c, l.to, l.tag).Send(ccl.BufOf(sliceOf[uint32](p))), l, p, true})
	}
	receive := func(l letter) {
		p := newPiece(s.own, s.arena, 4*l.count, 4)
		from := l.from
		if l.tag == anyTag {
			from = ccl.AnySource
		}
		all = append(all, pending{ccl.LinkTo(s.c, from, l.tag).Recv(ccl.BufOf(sliceOf[uint32](p))), l, p, false})
	}
	order := s.own.IntN(3)
	for pass := range 2 {
		for _, l := range letters {
			if me == l.from && (order == 2 && pass == 0 || order == pass) {
				send(l)
			}
			if me == l.to && (order == 2 && pass == 0 || order == 1-pass) {
				receive(l)
			}
		}
	}
	seen := make([]int, n) // letters of each rank on anyTag that have been looked at
	for _, x := range all {
		if err := s.awaits(x.m); err != nil {
			return fmt.Errorf("step %d: message %+v at rank %d: %w", s.step, x.l, me, err)
		}
		l := x.l
		if !x.sent && l.tag == anyTag {
			from := x.m.From()
			if from < 0 || from >= n {
				return s.wrongf("a receive from anybody is from %d", from)
			}
			theirs := slices.DeleteFunc(slices.Clone(letters), func(o letter) bool { return o.from != from || o.to != me || o.tag != anyTag })
			if seen[from] == len(theirs) {
				return s.wrongf("rank %d got more from rank %d than that has sent", me, from)
			}
			l = theirs[seen[from]]
			seen[from]++
		} else if !x.sent && x.m.From() != l.from {
			return s.wrongf("a receive from %d is from %d", l.from, x.m.From())
		}
		want := make([]uint32, l.count)
		l.fill(want)
		if text := differ(sliceOf[uint32](x.p), want); text != "" {
			return s.wrongf("message %+v at rank %d, sent %v: %s", l, me, x.sent, text)
		}
		if !x.p.intact() {
			return s.wrongf("message %+v at rank %d: what lies beside it was written", l, me)
		}
	}
	if err := cancel(); err != nil {
		return err
	}
	if err := s.racing(); err != nil {
		return err
	}
	return s.barrier() // nobody closes the Comm while another gives messages up
}

func (l letter) fill(x []uint32) {
	for i := range x {
		x[i] = moved[uint32](l.salt, l.from, i)
	}
}

// awaits waits for a message in one of the ways that there are.
func (s *scene) awaits(m ccl.Message) error {
	switch s.own.IntN(3) {
	case 0:
		told := make(chan error, 2)
		m.OnDone(func(err error) { told <- err })
		return <-told
	case 1:
		if err := m.Wait(ended); err != nil && !errors.Is(err, ccl.ErrCanceled) {
			return err
		}
	}
	return m.Wait(s.ctx)
}

// cancelled gives messages up that nobody receives or sends: they end so, and nobody notices them any more.
func (s *scene) cancelled() (finish func() error) {
	n, me := s.c.Size(), s.c.Rank()
	peer := (me + 1 + s.own.IntN(n)) % n
	in := ccl.LinkTo(s.c, peer, idleTag).Recv(ccl.BufOf(make([]byte, 1000)))
	out := ccl.LinkTo(s.c, peer, idleTag+1).Send(ccl.BufOf(make([]byte, 40_000)))
	return func() error {
		for _, m := range []ccl.Message{in, out} {
			m.Cancel()
			if err := m.Wait(s.ctx); s.c.Err() != nil {
				return err
			} else if !errors.Is(err, ccl.ErrCanceled) {
				return s.wrongf("a message that was canceled ends with %v", err)
			}
		}
		return nil
	}
}

// racing receives with limits that end at about the time when a message arrives: each comes once, in order, to one of the
// receives.
func (s *scene) racing() error {
	n, me := s.c.Size(), s.c.Rank()
	from, count, size := s.rnd.IntN(n), 1+s.rnd.IntN(8), 1+s.rnd.IntN(4000)
	to := (from + 1) % n
	var sends []ccl.Message
	salt := s.rnd.Uint64()
	if me == from && n > 1 {
		for i := range count {
			time.Sleep(time.Duration(s.own.IntN(2000)) * time.Microsecond)
			x := make([]uint32, size)
			letter{salt: salt + uint64(i)}.fill(x)
			sends = append(sends, ccl.LinkTo(s.c, to, racingTag).Send(ccl.BufOf(x)))
		}
	}
	if me == to && n > 1 {
		for i, tries := 0, 0; i < count; tries++ {
			x, want := make([]uint32, size), make([]uint32, size)
			letter{salt: salt + uint64(i)}.fill(want)
			limit := time.Duration(1+s.own.IntN(3000)) * time.Microsecond
			err := ccl.LinkTo(s.c, from, racingTag).Within(limit).Recv(ccl.BufOf(x)).Wait(s.ctx)
			switch {
			case err == nil:
				if text := differ(x, want); text != "" {
					return s.wrongf("message %d of %d, which races with a limit: %s", i, count, text)
				}
				i++
			case !errors.Is(err, ccl.ErrTimeout) || s.ctx.Err() != nil || s.c.Err() != nil:
				return fmt.Errorf("step %d: message %d of %d, after %d tries: %w", s.step, i, count, tries, err)
			}
		}
	}
	for i, m := range sends {
		if err := m.Wait(s.ctx); err != nil {
			return fmt.Errorf("step %d: send %d of %d, which races with a limit: %w", s.step, i, count, err)
		}
	}
	return nil
}
