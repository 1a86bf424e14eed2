package links

import (
	"context"
	"hash/crc32"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/reduce"
)

// A receiver is one message on its way in. Like a sender, it goes as far as it can.
type receiver struct {
	l      *Link
	turn   uint64
	head   arrival
	to     []byte
	in     int // bytes of to that are complete, without what fold carries
	fold   folding
	check  checksum
	shares []int32 // of how many operands each part of to is the share, where a call Weighs: of as many for all parts
	// Where a step sends what it reduces into, only what has left may change.
	after *sender
	prev  *receiver  // reduces into the same place, and goes first
	of    *call.Call // as a sender's
	done  bool

	spread gathering
}

// arrival is a header on its way in, and the one that is expected.
type arrival struct {
	want head
	got  [HeadBytes]byte
	n    int // bytes of got that have come
}

// folding is how a message that is to be reduced is combined with what its receiver has; fn is nil where it only moves.
type folding struct {
	fn      reduce.Func
	k       *call.Call // in the place of fn, where it Weighs
	theirs  int32      // of how many operands what is received is the share
	elem    int
	first   bool     // fn(received, own) rather than fn(own, received)
	own     []byte   // what the result begins as: the result's own memory, or as much elsewhere
	carry   [16]byte // the beginning of an element whose rest has not come
	carried int
}

// checksum is what a header promises of its payload, if it does, and what of that has come.
type checksum struct {
	on            bool
	promised, sum uint32
}

func (r *receiver) start(l *Link, want head, to []byte) {
	*r = receiver{l: l, turn: l.inNext, head: arrival{want: want}, to: to}
	r.head.want.bytes = uint64(len(to))
	l.inNext++
}

// progressIn receives what the link has.
func (c *messages) progressIn(ctx context.Context, r *receiver) (moved bool, f *call.Fault) {
	if r.l.inTurn != r.turn {
		return false, nil
	}
	if r.l.in == nil {
		if ok, f := c.ends.Ready(r.l); !ok {
			return false, f
		}
	}
	if head := r.head.got[r.head.n:]; len(head) > 0 {
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
			return false, c.ends.broken(ctx, r.l.peer, err)
		}
		if n == 0 {
			return false, nil
		}
		moved = true
		if n < len(head) {
			r.head.n += n
			return true, nil
		}
		r.head.n = HeadBytes
		if f := c.checkHead(ctx, r); f != nil {
			return true, f
		}
		r.absorb(room[:n-len(head)])
	}
	if r.isBehind() {
		return moved, nil
	}
	for r.in < len(r.to) {
		n, f := c.take(ctx, r)
		if f != nil {
			return moved, f
		}
		if n == 0 {
			return moved, nil
		}
		moved = true
	}
	if r.check.on && r.check.sum != r.check.promised {
		return true, c.rank.Stop(call.NewFault(call.Backend, r.l.peer,
			"what rank %d sent was damaged in transit (GOCCL_CHECKSUM)", r.l.peer))
	}
	r.counts()
	r.done = true
	r.l.inTurn++
	return true, nil
}

// counts notes of how many operands what r has received is now the share.
func (r *receiver) counts() {
	n := r.fold.theirs
	if r.fold.k != nil && len(r.shares) > 0 {
		n += r.shares[0]
	}
	for p := range r.shares {
		r.shares[p] = n
	}
}

// limit is how much of r.to may be complete now.
func (r *receiver) limit() int {
	if r.after != nil && !r.after.allDone() {
		return min(len(r.to), r.after.movedFrom(r.spread.from)/8*8)
	}
	return len(r.to)
}

// isBehind reports whether another message is to be reduced into the same place before.
func (r *receiver) isBehind() bool { return r.prev != nil && !r.prev.allDone() }

// wants is how many bytes of the payload may be received now.
func (r *receiver) wants() int {
	if r.isBehind() {
		return 0
	}
	return r.limit() - r.in - r.fold.carried
}

// mayMove reports whether r takes what comes next on its link.
func (r *receiver) mayMove() bool {
	return !r.done && r.l.inTurn == r.turn && (r.head.n < HeadBytes || r.wants() > 0)
}

// room is where the next payload of r is to be received, which absorb then takes: in its place, or on the wire
// if it is to be combined. It is empty where nothing may come yet.
func (c *messages) room(r *receiver) []byte {
	n := min(r.wants(), tuning.SyscallPiece)
	switch {
	case n <= 0:
		return nil
	case r.fold.fn == nil:
		return r.to[r.in : r.in+n]
	}
	return c.received()[:min(n, tuning.WirePiece)]
}

// take moves payload into place, combining where that is asked for.
func (c *messages) take(ctx context.Context, r *receiver) (int, *call.Fault) {
	n := min(r.wants(), tuning.SyscallPiece)
	if n <= 0 {
		return 0, nil
	}
	var v []byte
	var err error
	if r.fold.fn == nil {
		v = r.to[r.in : r.in+n]
		n, err = r.l.in.TryRecv(v)
		v = v[:n]
	} else {
		v, err = r.l.in.Peek(c.received(), n)
	}
	if err != nil {
		return 0, c.ends.broken(ctx, r.l.peer, err)
	}
	r.absorb(v)
	if r.fold.fn != nil {
		r.l.in.Discard(len(v))
	}
	return len(v), nil
}

// absorb takes v, the payload that comes next: it lies in place already, or is combined.
func (r *receiver) absorb(v []byte) {
	if r.check.on {
		r.check.sum = crc32.Update(r.check.sum, Castagnoli, v)
	}
	if r.fold.fn == nil {
		r.in += len(v)
		return
	}
	if r.fold.carried > 0 { // complete the element that was cut
		k := copy(r.fold.carry[r.fold.carried:r.fold.elem], v)
		r.fold.carried += k
		if v = v[k:]; r.fold.carried == r.fold.elem {
			r.combine(unsafe.Pointer(&r.fold.carry), r.fold.elem)
			r.fold.carried = 0
		}
	}
	if whole := len(v) / r.fold.elem * r.fold.elem; whole > 0 {
		r.combine(unsafe.Pointer(&v[0]), whole)
		v = v[whole:]
	}
	if len(v) > 0 {
		r.fold.carried = copy(r.fold.carry[:], v)
	}
}

// combine folds n received bytes into place.
func (r *receiver) combine(p unsafe.Pointer, n int) {
	to, own := unsafe.Pointer(&r.to[r.in]), unsafe.Pointer(&r.fold.own[r.in])
	switch {
	case r.fold.k != nil && r.fold.first:
		r.fold.k.Share(to, p, own, n, r.fold.theirs, r.shares[0])
	case r.fold.k != nil:
		r.fold.k.Share(to, own, p, n, r.shares[0], r.fold.theirs)
	case r.fold.first:
		r.fold.fn(to, p, own, n/r.fold.elem)
	default:
		r.fold.fn(to, own, p, n/r.fold.elem)
	}
	r.in += n
}

// checkHead compares the header that came with the one that should have.
func (c *messages) checkHead(ctx context.Context, r *receiver) *call.Fault {
	var h head
	if err := h.decode(r.head.got[:]); err != nil {
		return c.rank.Stop(call.NewFault(call.Backend, r.l.peer, "from rank %d: %w", r.l.peer, err))
	}
	r.check.on, r.check.promised = h.summed, h.sum
	r.fold.theirs = h.shares
	a, b := &h.record, &r.head.want.record
	if h.kind == messageData && a.Hash == b.Hash && a.Place == b.Place && h.step == r.head.want.step &&
		h.bytes == r.head.want.bytes && h.comm == r.head.want.comm && h.lane == r.head.want.lane &&
		(h.lane == 0 || h.lanes == r.head.want.lanes) && (h.lanes == 0 || r.l.conn != nil) {
		if h.lane == 0 && h.lanes > 1 {
			r.narrow(int(h.lanes))
		}
		return nil
	}
	return c.wrongHead(ctx, r, h)
}

func (c *messages) wrongHead(ctx context.Context, r *receiver, h head) *call.Fault {
	if f := c.ends.farewell(ctx, &h, r.l.peer); f != nil {
		return c.rank.Stop(f)
	}
	mine, theirs, before := r.head.want.record, h.record, c.rank.Order.Entered(1)
	switch {
	case mine.Kind.Pairwise():
	case theirs.Place == mine.Place+1: // it got nothing in the call that differs, and went on
		theirs = h.before
	case theirs.Place+1 == mine.Place: // so did this rank
		mine = before
	case h.before.Place == before.Place && h.before.Hash != before.Hash: // so did both
		mine, theirs = before, h.before
	}
	return c.rank.Stop(&call.Fault{Code: call.Mismatch, Peer: r.l.peer, Mine: &mine, Theirs: &theirs})
}

// received is where bytes that have come wait to be combined.
func (c *messages) received() []byte {
	if c.wire == nil {
		c.wire = make([]byte, tuning.WirePiece)
	}
	return c.wire
}
