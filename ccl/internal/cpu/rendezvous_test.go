package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// pairOf are the ends of a message of n bytes from one goroutine rank to another, of which the first record is there.
func pairOf(t *testing.T, n int) (all []*Comm, o *links.Outgoing, i *links.Incoming, k *call.Call) {
	t.Helper()
	all = comms(t, []string{"a", "a"})
	k = &call.Call{Head: op.Head{Record: call.Record{Count: uint64(n), Kind: call.SendRecv}}, Src: bytesFrom(3, n), Dst: make([]byte, n)}
	out, f := all[0].links.Link(t.Context(), 1, links.PointToPoint)
	require.Nil(t, f)
	in, f := all[1].links.Link(t.Context(), 0, links.PointToPoint)
	require.Nil(t, f)
	ok, f := all[1].links.Ready(in)
	require.Nil(t, f)
	require.True(t, ok)
	o, i = &links.Outgoing{L: out, Hash: 5, Left: k.Src}, &links.Incoming{L: in, Hash: 5, Left: make([]byte, n)}
	require.True(t, all[0].links.SendHere(o, k))
	return all, o, i, k
}

func TestRendezvous(t *testing.T) {
	all, o, i, k := pairOf(t, 100_000)
	require.EqualValues(t, links.RecordOffer, i.L.From.Cell().Record())
	to := i.Left
	require.False(t, all[0].links.SendHere(o, k), "nobody has answered yet")
	moved, f := all[1].links.ReceiveHere(t.Context(), i, k)
	require.Nil(t, f)
	require.True(t, moved)
	require.True(t, i.Done)
	require.Equal(t, k.Src, to)
	o.Withdraw() // too late to change anything
	assert.EqualValues(t, links.Fetched, i.L.From.Rendezvous().State&7)
}

// A sender whose call has failed may change its memory, so what is read after that does not count.
func TestRendezvousWithdrawn(t *testing.T) {
	all, o, i, k := pairOf(t, 100_000)
	o.Withdraw()
	clear(k.Src)
	_, f := all[1].links.ReceiveHere(t.Context(), i, k)
	require.NotNil(t, f)
	assert.Equal(t, call.Backend, f.Code)
	assert.Equal(t, 0, f.Peer)
	assert.False(t, i.Done)
}

// What the receiver does not fetch goes through the pipe: this message, or all of them.
func TestRendezvousRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		refuse func(t *testing.T, c *Comm, i *links.Incoming, k *call.Call)
		later  bool // messages are offered again
	}{
		{"as a stream", func(t *testing.T, _ *Comm, i *links.Incoming, _ *call.Call) {
			n, err := i.L.From.TryRecv(make([]byte, links.HeadBytes))
			require.NoError(t, err)
			require.Zero(t, n)
		}, true},
		{"memory of another process that cannot be read", func(t *testing.T, c *Comm, i *links.Incoming, k *call.Call) {
			i.L.From.Rendezvous().Number++ // the same number of the process, as in another container
			moved, f := c.links.ReceiveHere(t.Context(), i, k)
			require.Nil(t, f)
			require.True(t, moved)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, o, i, k := pairOf(t, 100_000)
			to := i.Left
			tc.refuse(t, all[1], i, k)
			require.False(t, i.Done)
			for !i.Done {
				all[0].links.SendHere(o, k)
				_, f := all[1].links.ReceiveHere(t.Context(), i, k)
				require.Nil(t, f)
			}
			require.True(t, o.Done)
			require.Equal(t, k.Src, to)
			next := &links.Outgoing{L: o.L, Hash: 5, Left: k.Src}
			require.True(t, all[0].links.SendHere(next, k))
			assert.Equal(t, tc.later, i.L.From.Cell().Record() == links.RecordOffer)
		})
	}
}

// Where a call need not wait for the other end, it goes through the pipe.
func TestOffers(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind call.Kind
		n    int
		want bool
	}{
		{"small", call.SendRecv, tuning.ReadMessageFrom - 1, false},
		{"both ways", call.SendRecv, tuning.ReadMessageFrom, true},
		{"both ways, large", call.SendRecv, tuning.ReadAsideFrom, true},
		{"what a pipe holds", call.Send, tuning.PipeMax, false},
		{"more", call.Send, tuning.PipeMax + 1, true},
		{"so much that two processes which copy are faster", call.Send, tuning.ReadRootTo + 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c links.Links
			o := &links.Outgoing{L: &links.Link{To: &links.PipeWriter{}}, Left: make([]byte, tc.n)}
			k := &call.Call{Head: op.Head{Record: call.Record{Kind: tc.kind}}, Src: o.Left}
			assert.Equal(t, tc.want, c.Offers(o, k))
			k.Dst = k.Src
			assert.Equal(t, tc.want && (tc.kind == call.Send || tc.n >= tuning.ReadAsideFrom), c.Offers(o, k), "in place")
		})
	}
}
