package campaign

import (
	"cmp"
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
	idleTag   = 5 // and the next
	hastyTag  = 7 // and the next
	roomTag   = 9
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
	if err := cmp.Or(s.racing(), s.hasty()); err != nil {
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
			if err := m.Wait(s.ctx); s.c.Err() != nil || errors.Is(err, ccl.ErrClosed) {
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

// hasty sends three large messages, of which the first has a limit that ends while it moves, at its sender or at its receiver.
// All that its sender has not given up come once, in order. That one may have come, too.
func (s *scene) hasty() error {
	n, me := s.c.Size(), s.c.Rank()
	from, size, atSender := s.rnd.IntN(n), 5_000+s.rnd.IntN(20_000), s.rnd.IntN(2) == 0
	to := (from + 1) % n
	limit, salt, now := time.Duration(1+s.rnd.IntN(40))*time.Millisecond, s.rnd.Uint64(), s.rnd.IntN(2) == 0
	if n == 1 || me != from && me != to || !now {
		return nil
	}
	within := func(l ccl.Link, first, here bool) ccl.Link {
		if first && here {
			return l.Within(limit)
		}
		return l
	}
	if me == from {
		var sends []ccl.Message
		for i := range 3 {
			x := make([]uint32, size)
			letter{salt: salt + uint64(i)}.fill(x)
			sends = append(sends, within(ccl.LinkTo(s.c, to, hastyTag), i == 0, atSender).Send(ccl.BufOf(x)))
		}
		first := sends[0].Wait(s.ctx)
		switch {
		case first == nil, s.ctx.Err() != nil, s.c.Err() != nil:
		case errors.Is(first, ccl.ErrClosed): // of which c does not know yet
			return fmt.Errorf("step %d: the first of three messages: %w", s.step, first)
		case atSender && errors.Is(first, ccl.ErrTimeout), !atSender && errors.Is(first, ccl.ErrCanceled):
		default:
			return s.wrongf("the first of three messages, with a limit of %v at its sender (%v): %v", limit, atSender, first)
		}
		told := ccl.LinkTo(s.c, to, hastyTag+1).Send(ccl.BufOf([]uint32{uint32(is(first == nil))}))
		for _, m := range append(sends[1:], told) {
			if err := m.Wait(s.ctx); err != nil {
				return fmt.Errorf("step %d: a send after one with a limit: %w", s.step, err)
			}
		}
		return nil
	}
	var got []int
	await := func(m ccl.Message, x []uint32, first bool) error {
		switch err := m.Wait(s.ctx); {
		case err == nil:
			for i := range 3 {
				want := make([]uint32, size)
				letter{salt: salt + uint64(i)}.fill(want)
				if slices.Equal(x, want) {
					got = append(got, i)
					return nil
				}
			}
			return s.wrongf("one of three messages has come in pieces of several")
		case first && s.c.Err() == nil && errors.Is(err, map[bool]error{true: ccl.ErrCanceled, false: ccl.ErrTimeout}[atSender]):
			return nil
		default:
			return fmt.Errorf("step %d: one of three messages, the first with a limit: %w", s.step, err)
		}
	}
	xs, ms := make([][]uint32, 2), make([]ccl.Message, 2)
	for i := range ms {
		xs[i] = make([]uint32, size)
		ms[i] = within(ccl.LinkTo(s.c, from, hastyTag), i == 0, !atSender).Recv(ccl.BufOf(xs[i]))
	}
	for i, m := range ms {
		if err := await(m, xs[i], i == 0); err != nil {
			return err
		}
	}
	well := []uint32{0}
	if err := ccl.LinkTo(s.c, from, hastyTag+1).Recv(ccl.BufOf(well)).Wait(s.ctx); err != nil {
		return fmt.Errorf("step %d: what came of the first of three messages: %w", s.step, err)
	}
	for !slices.Contains(got, 2) {
		x := make([]uint32, size)
		if err := await(ccl.LinkTo(s.c, from, hastyTag).Recv(ccl.BufOf(x)), x, false); err != nil {
			return err
		}
	}
	if all := []int{0, 1, 2}; !slices.Equal(got, all) && (well[0] > 0 || !slices.Equal(got, all[1:])) {
		return s.wrongf("of three messages, the first with a limit of %v at its sender (%v) and success %v, came %v", limit, atSender, well, got)
	}
	return nil
}
