package links

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The memory of messages is used again by the next step.
func TestMessagesAreKept(t *testing.T) {
	var c messages
	require.False(t, c.Pending())
	s, r := c.newSender(), c.newReceiver()
	s2 := c.newSender()
	require.NotSame(t, s, s2)
	require.True(t, c.Pending())
	c.Begin()
	require.False(t, c.Pending())
	require.Same(t, s, c.newSender())
	require.True(t, c.Pending())
	require.Same(t, r, c.newReceiver())
	require.Same(t, s2, c.newSender())
	require.Zero(t, testing.AllocsPerRun(10, func() { c.Begin(); c.newSender(); c.newReceiver() }))
}

// A step waits for its first message that is not done, receives before sends, and looks at connections seldom. It knows whether
// all that it waits for comes over them.
func TestAwaited(t *testing.T) {
	here, there := &Link{peer: 1}, &Link{peer: 2, conn: new(tcp.Conn)}
	for _, tc := range []struct {
		name         string
		tx           []*sender
		rx           []*receiver
		peer         int
		remote, only bool
	}{
		{"nothing", nil, nil, -1, false, false},
		{"a send", []*sender{{l: here}}, nil, 1, false, false},
		{"a send to another host", []*sender{{l: here}, {l: there}}, nil, 1, true, false},
		{"one that is done", []*sender{{l: there, done: true}, {l: here}}, nil, 1, false, false},
		{"a receive first", []*sender{{l: here}}, []*receiver{{l: there}}, 2, true, false},
		{"a receive that is done", []*sender{{l: here}}, []*receiver{{l: there, done: true}}, 1, false, false},
		{"all from and to other hosts", []*sender{{l: there}, {l: here, done: true}}, []*receiver{{l: there}}, 2, true, true},
	} {
		var c messages
		c.tx, c.rx, c.rank = tc.tx, tc.rx, ranksOf(t, 1, plane.Options{})[0].rank
		c.rank.Share.Spins = 64
		assert.Equal(t, tc.peer, c.awaited(), tc.name)
		remote, only := c.remote()
		assert.Equal(t, []bool{tc.remote, tc.only}, []bool{remote, only}, tc.name)
	}
	var c messages
	c.rank = ranksOf(t, 1, plane.Options{})[0].rank
	c.rank.Share.Spins = 64
	assert.Equal(t, []int{4, tuning.ConnLooks}, []int{c.looks(false), c.looks(true)})
}

// A wait begins anew when something has moved; after 4096 times in a row, a call looks whether it must end.
func TestPatience(t *testing.T) {
	c := ranksOf(t, 1, plane.Options{})[0]
	c.rank.Current.Begin(nil, c.rank.Site.Job.Clock(), false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := patience{wait: plane.Waiter{Looks: 3, Several: true}}
	for range 4095 {
		require.Nil(t, w.moved(ctx, &c.Ends))
		require.Zero(t, w.wait)
	}
	f := w.moved(ctx, &c.Ends)
	require.NotNil(t, f)
	require.Equal(t, call.Canceled, f.Code)
}

// All messages of a step move at once: messages that cross do not wait for each other, and those of one link come in order.
func TestMove(t *testing.T) {
	const n, count = 3, 50_000 // more than a pipe holds
	ranks := ranksOf(t, n, plane.Options{})
	got := make([][][]int32, n)
	atOnce(t, ranks, func(c *Links) *call.Fault {
		return made(c, callOf(call.Barrier, -1, 0, nil, nil), func(ctx context.Context, k *call.Call) *call.Fault {
			c.Messages.Begin()
			got[c.rank.Group.Rank()] = make([][]int32, 2*n)
			for i := range 2 {
				for q := range n {
					if q == c.rank.Group.Rank() {
						continue
					}
					l, f := c.Ends.Link(ctx, q, collective)
					if f != nil {
						return f
					}
					h := head{comm: c.rank.Group.ID(), kind: messageData, step: uint32(i), record: c.rank.Order.Entered(0), before: c.rank.Order.Entered(1)}
					c.Messages.newSender().start(l, &h, bytesOf(vector(c.rank.Group.Rank(), q, count+i)))
					got[c.rank.Group.Rank()][2*q+i] = make([]int32, count+i)
					c.Messages.newReceiver().start(l, h, bytesOf(got[c.rank.Group.Rank()][2*q+i]))
				}
			}
			return c.Messages.Move(ctx)
		})
	})
	for r := range n {
		for q := range n {
			for i := range 2 {
				if q != r {
					same(t, vector(q, r, count+i), got[r][2*q+i], "message %d of rank %d to %d", i, q, r)
				}
			}
		}
	}
}

// What a step sleeps for is a message whose turn it is, and that takes what comes.
func TestMayMove(t *testing.T) {
	l := &Link{outTurn: 3, inTurn: 5}
	payload := make([]byte, 64)
	for _, tc := range []struct {
		name string
		s    sender
		want bool
	}{
		{"it is its turn", sender{turn: 3}, true},
		{"another goes first", sender{turn: 4}, false},
		{"it is done", sender{turn: 3, done: true}, false},
		{"it is behind a receive", sender{turn: 3, behind: new(receiver)}, false},
		{"which is done", sender{turn: 3, behind: &receiver{done: true}}, true},
	} {
		tc.s.l = l
		assert.Equal(t, tc.want, tc.s.mayMove(), "a sender: %s", tc.name)
	}
	whole, part := arrival{n: HeadBytes}, arrival{n: HeadBytes - 1}
	unsent := &sender{l: l, frontLen: HeadBytes, body: payload}
	for _, tc := range []struct {
		name string
		r    receiver
		want bool
	}{
		{"its header comes", receiver{turn: 5, head: part}, true},
		{"another goes first", receiver{turn: 6, head: part}, false},
		{"it is done", receiver{turn: 5, head: whole, done: true}, false},
		{"its payload comes", receiver{turn: 5, head: whole, to: payload, in: 63}, true},
		{"another is reduced before", receiver{turn: 5, head: whole, to: payload, prev: new(receiver)}, false},
		{"which is done", receiver{turn: 5, head: whole, to: payload, prev: &receiver{done: true}}, true},
		{"its place has not left", receiver{turn: 5, head: whole, to: payload, after: unsent}, false},
		{"but its header may come", receiver{turn: 5, head: part, to: payload, after: unsent}, true},
	} {
		tc.r.l = l
		assert.Equal(t, tc.want, tc.r.mayMove(), "a receiver: %s", tc.name)
	}
}
