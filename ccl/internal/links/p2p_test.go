package links

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// message is a Send, Recv or SendRecv of count elements.
func message(kind call.Kind, to, from int, dst, src []int32) *call.Call {
	k := callOf(kind, from, max(len(dst), len(src)), dst, src)
	k.Type = 6
	switch kind {
	case call.Send:
		k.Root = int32(to)
	case call.SendRecv:
		k.To, k.Count = to, uint64(len(dst))
	}
	return k
}

// A message has the same data as records and, under CheckStrict, as a stream that is confirmed.
func TestPointToPoint(t *testing.T) {
	for _, strict := range []bool{false, true} {
		all := ranksOf(t, 3, plane.Options{Agreed: group.Agreed{Strict: strict}})
		for _, n := range []int{0, 1, 4, 300, tuning.HeaderPayload/4 + 1, 40_000} {
			atOnce(t, all[:2], func(c *Links) *call.Fault {
				if c.rank.Group.Rank() == 0 {
					return made(c, message(call.Send, 1, 0, nil, vector(0, 1, n)), c.Pairs.PointToPoint)
				}
				got := make([]int32, n)
				f := made(c, message(call.Recv, 0, 0, got, nil), c.Pairs.PointToPoint)
				same(t, vector(0, 1, n), got, "%d elements, strict %v", n, strict)
				return f
			})
			for _, inPlace := range []bool{false, true} {
				atOnce(t, all, func(c *Links) *call.Fault { // around a ring
					next, last := (c.rank.Group.Rank()+1)%3, (c.rank.Group.Rank()+2)%3
					src := vector(c.rank.Group.Rank(), next, n)
					got := make([]int32, n)
					if inPlace {
						got = src
					}
					f := made(c, message(call.SendRecv, next, last, got, src), c.Pairs.PointToPoint)
					same(t, vector(last, c.rank.Group.Rank(), n), got, "around the ring: %d elements, strict %v, in place %v", n, strict, inPlace)
					return f
				})
			}
		}
	}
}

// Messages of a group move at once: each of two ranks receives before it sends, and neither waits for the other.
func TestAddPointToPoint(t *testing.T) {
	const n = 40_000
	all := ranksOf(t, 2, plane.Options{})
	atOnce(t, all, func(c *Links) *call.Fault {
		peer := 1 - c.rank.Group.Rank()
		first, second := make([]int32, n), make([]int32, 5)
		f := made(c, message(call.Recv, 0, peer, first, nil), func(ctx context.Context, k *call.Call) *call.Fault {
			c.Messages.Begin()
			for _, k := range []*call.Call{k, message(call.Recv, 0, peer, second, nil),
				message(call.Send, peer, 0, nil, vector(c.rank.Group.Rank(), 8, n)), message(call.Send, peer, 0, nil, vector(c.rank.Group.Rank(), 9, 5))} {
				if f := c.Pairs.AddPointToPoint(ctx, k); f != nil {
					return f
				}
			}
			return c.Messages.Move(ctx)
		})
		same(t, vector(peer, 8, n), first, "the first")
		same(t, vector(peer, 9, 5), second, "the second")
		return f
	})
	for _, c := range all {
		l, f := c.Ends.Link(t.Context(), 1-c.rank.Group.Rank(), PointToPoint)
		require.Nil(t, f)
		assert.EqualValues(t, []uint64{uint64(c.rank.Order.Start) + 2, uint64(c.rank.Order.Start) + 2}, []uint64{l.sent, l.received})
	}
}

// What a SendRecv in place sends is copied, so that what arrives cannot replace it.
func TestSendRecvInPlaceIsCopied(t *testing.T) {
	for _, n := range []int{1, tuning.HeaderPayload / 4, tuning.HeaderPayload/4 + 1, 10_000} {
		c := ranksOf(t, 2, plane.Options{})[0]
		x := vector(0, 1, n)
		c.Messages.Begin()
		require.Nil(t, c.Pairs.AddPointToPoint(t.Context(), message(call.SendRecv, 1, 1, x, x)))
		s := c.Messages.tx[0]
		clear(x)
		got := append([]byte(nil), s.front[HeadBytes:s.frontLen]...)
		same(t, vector(0, 1, n), int32sOf(append(got, s.body...)), "%d elements", n)
	}
}

// The two ends of a message agree on its count and type, and on nothing else; unchecked on nothing.
func TestPairHash(t *testing.T) {
	c := ranksOf(t, 1, plane.Options{})[0]
	hash := func(kind call.Kind, typ uint8, root int32, count int) uint32 {
		return c.Pairs.pairHash(&call.Call{Head: op.Head{Record: call.Record{Kind: kind, Type: op.Type(typ), Root: root}}}, count)
	}
	want := hash(call.Send, 6, 1, 10)
	assert.NotZero(t, want)
	assert.Equal(t, want, hash(call.Recv, 6, 0, 10))
	assert.NotEqual(t, want, hash(call.Send, 6, 1, 11))
	assert.NotEqual(t, want, hash(call.Send, 7, 1, 10))
	c = ranksOf(t, 1, plane.Options{Agreed: group.Agreed{Unchecked: true}})[0]
	assert.EqualValues(t, 1, hash(call.Send, 6, 1, 10))
	h := c.Pairs.confirmation(&call.Call{Head: op.Head{Record: call.Record{Kind: call.Send, Hash: 77, Seq: 3}}}, 12)
	assert.Equal(t, head{comm: c.rank.Group.ID(), kind: messageData, record: call.Record{Kind: call.Send, Hash: 1, Place: 12, Seq: 3}}, h)
}

// A message of another count is a mismatch, which the receiver names.
func TestPointToPointThatDiffers(t *testing.T) {
	for _, strict := range []bool{false, true} {
		all := ranksOf(t, 2, plane.Options{Agreed: group.Agreed{Strict: strict}})
		faults := make([]*call.Fault, 2)
		atOnce(t, all, func(c *Links) *call.Fault {
			if c.rank.Group.Rank() == 0 {
				faults[0] = made(c, message(call.Send, 1, 0, nil, vector(0, 1, 3)), c.Pairs.PointToPoint)
			} else {
				faults[1] = made(c, message(call.Recv, 0, 0, make([]int32, 4), nil), c.Pairs.PointToPoint)
			}
			return nil
		})
		if assert.NotNil(t, faults[1], "strict %v", strict) {
			assert.Equal(t, call.Mismatch, faults[1].Code)
			assert.Equal(t, 0, faults[1].Peer)
			assert.EqualValues(t, 4, faults[1].Mine.Count)
			assert.EqualValues(t, 3, faults[1].Theirs.Count)
		}
		assert.Equal(t, strict, faults[0] != nil, "a Send that is confirmed fails, too")
	}
}
