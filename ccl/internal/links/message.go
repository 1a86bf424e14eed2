package links

import (
	"context"
	"hash/crc32"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/reduce"
)

// A sender is one message on its way out, a receiver one on its way in. Both go as
// far as they can and no further, so that all messages of a step move at once.
type sender struct {
	l        *Link
	turn     uint64
	front    [HeadBytes + tuning.HeaderPayload]byte // the header, and small payloads beside it
	frontLen int
	frontOut int
	body     []byte
	out      int       // of body
	behind   *receiver // goes first
	done     bool
}

type receiver struct {
	l     *Link
	turn  uint64
	want  head
	got   [HeadBytes]byte
	gotN  int
	to    []byte
	in    int // bytes of to that are complete, but for carry
	fold  reduce.Func
	elem  int
	first bool    // fold(received, own) rather than fold(own, received)
	own   []byte  // what to begins as: to itself, or as much memory elsewhere
	carry [8]byte // the beginning of an element whose rest has not come
	nc    int
	// Where a step sends what it reduces into, only what has left may change.
	after *sender
	prev  *receiver // reduces into the same place, and goes first
	// The checksum that the header promises, and that of what has come.
	summed        bool
	promised, sum uint32
	done          bool
}

// moved is how many bytes of its payload have left.
func (s *sender) moved() int {
	inFront := s.frontLen - HeadBytes
	if len(s.body) == 0 && inFront > 0 {
		return inFront // a copy: the original may change
	}
	return s.out
}

func (s *sender) start(l *Link, h *head, payload []byte) {
	s.l, s.turn, s.frontLen, s.frontOut, s.body, s.out, s.behind, s.done = l, l.outNext, HeadBytes, 0, payload, 0, nil, false
	l.outNext++
	h.bytes = uint64(len(payload))
	if h.summed = checksums && l.conn != nil; h.summed {
		h.sum = crc32.Checksum(payload, Castagnoli)
	}
	h.encode(s.front[:HeadBytes])
	if len(payload) <= tuning.HeaderPayload {
		s.frontLen += copy(s.front[HeadBytes:], payload)
		s.body = nil
	}
}

// progress sends what the link takes.
func (c *Links) progressOut(s *sender) (moved bool, f *call.Fault) {
	if s.l.outTurn != s.turn || s.behind != nil && !s.behind.done {
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
			return false, c.cut(s.l, err)
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
			return false, c.cut(s.l, err)
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

func (r *receiver) start(l *Link, want head, to []byte) {
	*r = receiver{l: l, turn: l.inNext, want: want, to: to}
	r.want.bytes = uint64(len(to))
	l.inNext++
}

// progressIn receives what the link has.
func (c *Links) progressIn(r *receiver) (moved bool, f *call.Fault) {
	if r.l.inTurn != r.turn {
		return false, nil
	}
	if r.l.in == nil {
		if ok, f := c.Ready(r.l); !ok {
			return false, f
		}
	}
	if head := r.got[r.gotN:]; len(head) > 0 {
		n, err := 0, error(nil)
		var room []byte // of a connection, the beginning of the payload comes with the header
		if r.l.conn != nil {
			room = c.room(r)
		}
		if len(room) > 0 {
			n, err = r.l.conn.TryRecvBoth(head, room)
		} else {
			n, err = r.l.in.TryRecv(head)
		}
		if err != nil {
			return false, c.broken(r.l.peer, err)
		}
		if n == 0 {
			return false, nil
		}
		moved = true
		if n < len(head) {
			r.gotN += n
			return true, nil
		}
		r.gotN = HeadBytes
		if f := c.checkHead(r); f != nil {
			return true, f
		}
		r.absorb(room[:n-len(head)])
	}
	if r.prev != nil && !r.prev.done {
		return moved, nil
	}
	for r.in < len(r.to) {
		n, f := c.take(r)
		if f != nil {
			return moved, f
		}
		if n == 0 {
			return moved, nil
		}
		moved = true
	}
	if r.summed && r.sum != r.promised {
		return true, c.Stop(call.NewFault(call.Backend, r.l.peer, "what rank %d sent was damaged in transit (GOCCL_CHECKSUM)", r.l.peer))
	}
	r.done = true
	r.l.inTurn++
	return true, nil
}

// limit is how much of r.to may be complete now.
func (r *receiver) limit() int {
	if r.after != nil && !r.after.done {
		return min(len(r.to), r.after.moved()/8*8)
	}
	return len(r.to)
}

// room is where the next payload of r is to be received, which absorb then takes: in its place, or on the wire
// if it is to be combined. It is empty where nothing may come yet.
func (c *Links) room(r *receiver) []byte {
	if r.prev != nil && !r.prev.done {
		return nil
	}
	n := min(r.limit()-r.in-r.nc, tuning.SyscallPiece)
	switch {
	case n <= 0:
		return nil
	case r.fold == nil:
		return r.to[r.in : r.in+n]
	}
	return c.wire()[:n]
}

// take moves payload into place, combining where that is asked for.
func (c *Links) take(r *receiver) (int, *call.Fault) {
	n := min(r.limit()-r.in-r.nc, tuning.SyscallPiece)
	if n <= 0 {
		return 0, nil
	}
	var v []byte
	var err error
	if r.fold == nil {
		v = r.to[r.in : r.in+n]
		n, err = r.l.in.TryRecv(v)
		v = v[:n]
	} else {
		v, err = r.l.in.Peek(c.wire(), n)
	}
	if err != nil {
		return 0, c.broken(r.l.peer, err)
	}
	r.absorb(v)
	if r.fold != nil {
		r.l.in.Discard(len(v))
	}
	return len(v), nil
}

// absorb takes v, the payload that comes next: it lies in place already, or is combined.
func (r *receiver) absorb(v []byte) {
	if r.summed {
		r.sum = crc32.Update(r.sum, Castagnoli, v)
	}
	if r.fold == nil {
		r.in += len(v)
		return
	}
	if r.nc > 0 { // complete the element that was cut
		k := copy(r.carry[r.nc:r.elem], v)
		r.nc += k
		if v = v[k:]; r.nc == r.elem {
			r.combine(unsafe.Pointer(&r.carry), r.elem)
			r.nc = 0
		}
	}
	if whole := len(v) / r.elem * r.elem; whole > 0 {
		r.combine(unsafe.Pointer(&v[0]), whole)
		v = v[whole:]
	}
	if len(v) > 0 {
		r.nc = copy(r.carry[:], v)
	}
}

// combine folds n received bytes into place.
func (r *receiver) combine(p unsafe.Pointer, n int) {
	to, own := unsafe.Pointer(&r.to[r.in]), unsafe.Pointer(&r.own[r.in])
	if r.first {
		r.fold(to, p, own, n/r.elem)
	} else {
		r.fold(to, own, p, n/r.elem)
	}
	r.in += n
}

// checkHead compares the header that came with the one that should have.
func (c *Links) checkHead(r *receiver) *call.Fault {
	var h head
	if err := h.decode(r.got[:]); err != nil {
		return c.Stop(call.NewFault(call.Backend, r.l.peer, "from rank %d: %w", r.l.peer, err))
	}
	r.summed, r.promised = h.summed, h.sum
	a, b := &h.record, &r.want.record
	if h.kind == messageData && a.Hash == b.Hash && a.Seq == b.Seq && h.step == r.want.step && h.bytes == r.want.bytes && h.comm == r.want.comm {
		return nil
	}
	return c.wrongHead(r, h)
}

func (c *Links) wrongHead(r *receiver, h head) *call.Fault {
	if f := c.farewell(&h, r.l.peer); f != nil {
		return c.Stop(f)
	}
	mine, theirs, before := r.want.record, h.record, c.Entered(1)
	switch {
	case call.IsPairwise(mine.Kind):
	case theirs.Seq == mine.Seq+1: // it got nothing in the call that differs, and went on
		theirs = h.before
	case theirs.Seq+1 == mine.Seq: // so did this rank
		mine = before
	case h.before.Seq == before.Seq && h.before.Hash != before.Hash: // so did both
		mine, theirs = before, h.before
	}
	return c.Stop(&call.Fault{Code: call.Mismatch, Peer: r.l.peer, Mine: &mine, Theirs: &theirs})
}

// wire is where received bytes wait to be combined.
func (c *Links) wire() []byte {
	if c.Exec.wire == nil {
		c.Exec.wire = make([]byte, tuning.SyscallPiece)
	}
	return c.Exec.wire
}

// Move runs all messages of a step to their end.
func (c *Links) Move(ctx context.Context, tx []*sender, rx []*receiver) *call.Fault {
	var w plane.Waiter
	laps := 0
	for {
		left, moved := 0, false
		for _, s := range tx {
			if s.done {
				continue
			}
			m, f := c.progressOut(s)
			if f != nil {
				return f
			}
			moved = moved || m
			if !s.done {
				left++
			}
		}
		for _, r := range rx {
			if r.done {
				continue
			}
			m, f := c.progressIn(r)
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
			if w.Nap > 0 {
				c.NoteProgress()
			}
			w = plane.Waiter{}
			if laps++; laps&4095 == 0 { // a call that always moves must notice the end, too
				if f := c.Interrupted(ctx); f != nil {
					return f
				}
			}
			continue
		}
		w.Looks++
		looks := c.looks(tx, rx)
		if w.Looks < looks {
			continue
		}
		w.Looks, w.Several, w.Remote = 0, left > 1, looks == tuning.ConnLooks
		if f := c.Pause(ctx, &w, awaited(tx, rx)); f != nil {
			return f
		}
	}
}

// looks is how often a rank looks at the messages of a step before it gives way.
func (c *Links) looks(tx []*sender, rx []*receiver) int {
	for _, r := range rx {
		if !r.done && r.l.conn != nil {
			return tuning.ConnLooks
		}
	}
	for _, s := range tx {
		if !s.done && s.l.conn != nil {
			return tuning.ConnLooks
		}
	}
	return c.Spins / 16
}

// awaited is the rank the first unfinished message waits for.
func awaited(tx []*sender, rx []*receiver) int {
	for _, r := range rx {
		if !r.done {
			return r.l.peer
		}
	}
	for _, s := range tx {
		if !s.done {
			return s.l.peer
		}
	}
	return -1
}
