package rounds

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Between two ranks, data of a call with a root go one way: a stream, in rounds of which one rank's
// slots carry data and the other's flags say how far that has come. The sender runs ahead, across
// calls: by all slots of the kind that a round takes. Up to inline bytes lie in the slots beside
// the flags, and more in the sender's ring; vectors of more than tuning.Layout.StreamTo go in
// chunks through staging memory.

// stream is what two ranks do in a call with a root: one sends, the other receives.
type stream struct {
	seat
	slots   *slots
	staging *staging
	offers  *offering
	sums    *sums
}

// streamed opens a round that carries n bytes from rank r, one of two, and returns where they lie.
func (c *stream) streamed(ctx context.Context, k *call.Call, r,
	n int) (round uint32, at unsafe.Pointer, f *call.Fault) {
	switch {
	case n <= c.local.Inline:
		if round, f = c.slots.open(ctx, k, false); f != nil {
			return round, nil, f
		}
		return round, c.local.Payload(r, round, n), nil
	case n > tuning.StreamPiece:
		if round, f = c.slots.open(ctx, k, true); f == nil {
			at, f = c.staging.stage(r, round)
		}
		return round, at, f
	}
	c.rank.Order.Round++
	round = c.rank.Order.Round
	if need := round - (tuning.StreamDepth - 2); r == c.me && int32(c.slots.seen-need) < 0 {
		if f = c.slots.catchUp(ctx, k, need+tuning.StreamDepth/4); f != nil { // some more, as in openLate
			return round, nil, f
		}
	}
	at, f = c.staging.piece(r, n)
	return round, at, f
}

// pieceOf is how many bytes of a stream of n go in a round.
func (c *stream) pieceOf(n int) int {
	if n > c.local.Layout.StreamTo {
		return c.staging.chunk
	}
	return tuning.StreamPiece
}

// sendStream posts src, piece by piece.
func (c *stream) sendStream(ctx context.Context, k *call.Call, src []byte) *call.Fault {
	if n := len(src); n <= c.local.Inline { // straight: the smallest calls
		round, f := c.slots.open(ctx, k, false)
		if f != nil {
			return f
		}
		ordered.Put(c.local.Payload(c.me, round, n), src)
		c.slots.post(k, round)
		if n > tuning.BesideFlag { // the next call's data begin in a line that the other has, too
			ahead := 1
			if n <= c.local.Layout.ClaimSent {
				ahead = region.BehindFlag(n) + n - 64
			}
			ordered.Claim(unsafe.Add(unsafe.Pointer(c.slots.own.At(round+1)), 64), ahead)
		}
		if ahead := c.local.Layout.SentAhead; n <= ahead.To {
			ordered.Claim(unsafe.Pointer(c.local.Flag(c.me, round+ahead.Rounds)), region.BehindFlag(n)+n)
		}
		return nil
	}
	for piece := c.pieceOf(len(src)); len(src) > 0; {
		n := min(len(src), piece)
		round, to, f := c.streamed(ctx, k, c.me, n)
		if f != nil {
			return f
		}
		ordered.Put(to, src[:n])
		c.slots.post(k, round)
		if c.local.Layout.ClaimAhead && n > c.local.Inline && n <= tuning.StreamPiece {
			mem := c.staging.sent.mem[c.me]
			ordered.Claim(unsafe.Pointer(&mem[c.staging.sent.begins(c.me, n, len(mem))]), min(tuning.ClaimPiece, n))
		}
		src = src[n:]
	}
	return nil
}

// fetchAhead asks for what the sender has posted, or will soon, some rounds after this one, where
// that helps. A rank that has caught up with the sender would take away the lines that the sender
// is about to write.
func (c *stream) fetchAhead(round uint32, n int) {
	if n > c.local.Layout.FetchAhead.To || uint32(atomic.LoadUint64(c.local.Flag(1-c.me, round))>>32) != round {
		return
	}
	lines := 1
	if n > tuning.BesideFlag {
		lines = region.BehindFlag(n) + n
	}
	ordered.Fetch(unsafe.Pointer(c.local.Flag(1-c.me, round+c.local.Layout.FetchAhead.Rounds)), lines)
}

// receiveStream fills dst with what the other rank sends, or, where own is not nil, with that and own, reduced.
func (c *stream) receiveStream(ctx context.Context, k *call.Call, dst []byte, own unsafe.Pointer) *call.Fault {
	if n := len(dst); n <= c.local.Inline {
		round, f := c.slots.open(ctx, k, false)
		if f != nil {
			return f
		}
		c.fetchAhead(round, n)
		return c.receivePiece(ctx, k, round, dst, own, c.local.Payload(1-c.me, round, n))
	}
	piece := c.pieceOf(len(dst))
	for at := 0; at < len(dst); at += piece {
		part := dst[at:min(at+piece, len(dst))]
		round, from, f := c.streamed(ctx, k, 1-c.me, len(part))
		if f != nil {
			return f
		}
		mine := own
		if own != nil {
			mine = unsafe.Add(own, at)
		}
		if f = c.receivePiece(ctx, k, round, part, mine, from); f != nil {
			return f
		}
	}
	return nil
}

// receivePiece fills dst with the piece of round, which lies at from.
func (c *stream) receivePiece(ctx context.Context, k *call.Call, round uint32, dst []byte,
	own, from unsafe.Pointer) *call.Fault {
	c.slots.post(k, round)
	if f := c.slots.await(ctx, k, 1-c.me, round); f != nil {
		return f
	}
	c.slots.seen = round
	switch {
	case own == nil && len(dst) > c.local.Inline && c.offers.streams(k.Kind, len(k.Dst)):
		reduce.Stream(op.Ptr(dst), from, len(dst))
	case own == nil:
		ordered.Get(dst, from)
	default:
		c.sums.foldTwo(k, op.Ptr(dst), own, from, len(dst))
	}
	return nil
}
