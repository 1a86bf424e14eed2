package links

import (
	"context"
	"hash/crc32"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A sender is one message on its way out. It goes as far as it can and no further, so that all
// messages of a step move at once.
type sender struct {
	l        *Link
	turn     uint64
	front    [HeadBytes + tuning.HeaderPayload]byte // the header, and small payloads beside it
	frontLen int
	frontOut int
	body     []byte
	out      int        // of body
	behind   *receiver  // goes first
	of       *call.Call // the point-to-point call that it belongs to, if it does
	done     bool
	spread   spreading
}

// moved is how many bytes of its payload have left, or have been copied: they may change. A record
// of a protected connection is a copy. If it counted only when the kernel has all of it, two ranks
// that may receive only where they have sent from would wait for each other once the buffers
// between them hold less than a record.
func (s *sender) moved() int {
	inFront := s.frontLen - HeadBytes
	if len(s.body) == 0 && inFront > 0 {
		return inFront
	}
	if s.l.conn == nil || s.done || s.l.outTurn != s.turn {
		return s.out
	}
	return s.out + max(0, s.l.conn.Copied()-(s.frontLen-s.frontOut))
}

// start sends payload, or its first share: messages.spread sends the others.
func (s *sender) start(l *Link, h *head, payload []byte) {
	h.bytes, h.lanes, h.lane = uint64(len(payload)), l.lanesOf(h, len(payload)), 0
	if h.lanes == 0 {
		s.begin(l, h, payload)
		s.spread.head.lanes = 0
		return
	}
	_, part := share(payload, int(h.lanes), 0)
	s.begin(l, h, part)
	s.spread.head, s.spread.whole = *h, payload
}

// begin sends payload, or one share of a message, which h says.
func (s *sender) begin(l *Link, h *head, payload []byte) {
	s.spread.from, s.spread.next = 0, nil
	s.l, s.turn, s.frontLen, s.frontOut, s.body, s.out, s.behind, s.of, s.done = l, l.outNext, HeadBytes, 0, payload, 0,
		nil, nil, false
	l.outNext++
	if h.summed = l.conn != nil && checksums(); h.summed {
		h.sum = crc32.Checksum(payload, Castagnoli)
	}
	h.encode(s.front[:HeadBytes])
	if len(payload) <= tuning.HeaderPayload {
		s.frontLen += copy(s.front[HeadBytes:], payload)
		s.body = nil
	}
}

// mayMove reports whether s is not done, and no other message goes first.
func (s *sender) mayMove() bool {
	return !s.done && s.l.outTurn == s.turn && (s.behind == nil || s.behind.allDone())
}

// progressOut sends what the link takes.
func (c *messages) progressOut(ctx context.Context, s *sender) (moved bool, f *call.Fault) {
	if !s.mayMove() {
		return false, nil
	}
	if front := s.front[s.frontOut:s.frontLen]; len(front) > 0 {
		n, err := 0, error(nil)
		if s.l.conn != nil && len(s.body) > 0 {
			n, err = s.l.conn.TrySendBoth(front, s.body[:min(len(s.body), tuning.SyscallPiece)])
		} else {
			n, err = s.l.out.TrySend(front)
		}
		if err != nil {
			return false, c.cut(ctx, s.l, err)
		}
		if n == 0 {
			return false, nil
		}
		moved = true
		if n < len(front) {
			s.frontOut += n
			return true, nil
		}
		s.frontOut, s.out = s.frontLen, n-len(front)
	}
	if s.out < len(s.body) {
		n, err := s.l.out.TrySend(s.body[s.out:min(len(s.body), s.out+tuning.SyscallPiece)])
		if err != nil {
			return false, c.cut(ctx, s.l, err)
		}
		s.out += n
		moved = moved || n > 0
	}
	if s.out == len(s.body) {
		s.done = true
		s.body = nil
		s.l.outTurn++
	}
	return moved, nil
}

// cut is broken, for a link on which this rank could not send: what the peer said
// last may still wait to be read.
func (c *messages) cut(ctx context.Context, l *Link, err error) *call.Fault {
	for _, r := range c.rx {
		if r.l == l && !r.done && r.head.n > 0 {
			return c.ends.broken(ctx, l.peer, err)
		}
	}
	var b [HeadBytes]byte
	var h head
	if n, _ := l.in.TryRecv(b[:]); n == HeadBytes && h.decode(b[:]) == nil {
		if f := c.ends.farewell(ctx, &h, l.peer); f != nil {
			return c.rank.Stop(f)
		}
	}
	return c.ends.broken(ctx, l.peer, err)
}
