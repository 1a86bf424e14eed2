package links

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/algo"
)

// A part of an operand is read where the caller has it until it has been written, and then where it was written. Where some
// of the parts asked for have been written, the others join them.
func TestOperand(t *testing.T) {
	const parts, size = 4, 64
	fresh := func() (o operand, v call.Vector, src []byte) {
		src, dst := make([]byte, parts*size), make([]byte, parts*size)
		for i := range src {
			src[i] = byte(1 + i/size)
		}
		v = call.Even(dst, parts)
		o = operand{source: v, written: make([]bool, parts)}
		o.source.Mem = src
		return o, v, src
	}
	for _, tc := range []struct {
		name     string
		written  []int
		lo, hi   int
		isSource bool
		want     []byte // first byte of each part; 0: what was written
		then     []bool
	}{
		{"untouched", nil, 0, 4, true, []byte{1, 2, 3, 4}, []bool{false, false, false, false}},
		{"others were written", []int{0}, 1, 3, true, []byte{2, 3}, []bool{true, false, false, false}},
		{"all were", []int{1, 2}, 1, 3, false, []byte{0, 0}, []bool{false, true, true, false}},
		{"one was", []int{2}, 1, 4, false, []byte{2, 0, 4}, []bool{false, true, true, true}},
	} {
		o, v, src := fresh()
		for _, p := range tc.written {
			o.writes(p, p+1)
		}
		got := o.at(&v, tc.lo, tc.hi)
		require.Len(t, got, (tc.hi-tc.lo)*size, tc.name)
		assert.Equal(t, tc.isSource, &got[0] == &src[tc.lo*size], tc.name)
		for i, want := range tc.want {
			assert.Equal(t, want, got[i*size], "%s: part %d", tc.name, tc.lo+i)
		}
		assert.Equal(t, tc.then, o.written, tc.name)
	}
	var o operand // in place
	_, v, _ := fresh()
	o.writes(0, 4)
	assert.Equal(t, &v.Mem[size], &o.at(&v, 1, 2)[0])
}

// A schedule is built once for each algorithm, kind and root, and 64 of them are kept.
func TestScheduleIsKept(t *testing.T) {
	c := ranksOf(t, 100, plane.Options{})[3]
	s, f := c.schedule(t.Context(), callOf(call.Broadcast, 0, 8, nil, nil))
	require.Nil(t, f)
	require.NotZero(t, s.Steps)
	again, f := c.schedule(t.Context(), callOf(call.Broadcast, 0, 8, nil, nil))
	require.Nil(t, f)
	require.Equal(t, s.Steps, again.Steps)
	require.Len(t, c.plans, 1)
	for root := 1; root < 64; root++ {
		_, f := c.schedule(t.Context(), callOf(call.Broadcast, root, 8, nil, nil))
		require.Nil(t, f)
	}
	require.Len(t, c.plans, 64)
	_, f = c.schedule(t.Context(), callOf(call.Broadcast, 64, 8, nil, nil))
	require.Nil(t, f)
	require.Len(t, c.plans, 1, "many roots begin anew")
	require.Equal(t, algo.Choose(call.Broadcast, 32, c.rank.Group.Topology(), false, nil), c.Algorithm(callOf(call.Broadcast, 0, 8, nil, nil)))
}

// A reduction waits where the same step sends from its place, or another receive reduces into it.
func TestInTurn(t *testing.T) {
	var c Links
	c.step.Send = []algo.Move{{Peer: 1, Lo: 0, Hi: 2}, {Peer: 2, Lo: 2, Hi: 4}}
	c.step.Recv = []algo.Move{{Peer: 1, Lo: 2, Hi: 4}, {Peer: 2, Lo: 0, Hi: 2}, {Peer: 3, Lo: 3, Hi: 4}, {Peer: 4, Lo: 0, Hi: 1}, {Peer: 5, Lo: 4, Hi: 5}}
	for range 2 {
		c.Messages.newSender()
	}
	for i, want := range []struct {
		after *sender
		prev  int // -1: none
	}{{c.Messages.tx[1], -1}, {c.Messages.tx[0], -1}, {nil, 0}, {nil, 1}, {nil, -1}} {
		r := c.Messages.newReceiver()
		*r = receiver{}
		c.inTurn(true, c.step.Recv[i], r)
		assert.Equal(t, want.after, r.after, "receive %d", i)
		if want.prev < 0 {
			assert.Nil(t, r.prev, "receive %d", i)
		} else {
			assert.Same(t, c.Messages.rx[want.prev], r.prev, "receive %d", i)
		}
		r.after = nil
		c.inTurn(false, c.step.Recv[i], r)
		assert.Nil(t, r.after, "what is sent is not what is reduced into")
	}
}

// Both of two ranks reduce in the order of ranks, whichever has received.
func TestOrderOfOperands(t *testing.T) {
	for _, count := range []int{3, 50_000} {
		want := vector(0, 0, count)
		for i, x := range vector(1, 0, count) {
			want[i] -= x
		}
		atOnce(t, ranksOf(t, 2, plane.Options{}), func(c *Links) *call.Fault {
			dst := make([]int32, count)
			k := callOf(call.AllReduce, -1, count, dst, vector(c.rank.Group.Rank(), 0, count))
			k.Fold = minus
			f := made(c, k, c.RunRemote)
			same(t, want, dst, "rank %d, %d elements", c.rank.Group.Rank(), count)
			return f
		})
	}
}
