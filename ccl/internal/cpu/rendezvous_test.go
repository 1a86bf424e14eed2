package cpu

import (
	"testing"

	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairOf are the ends of a message of n bytes from one goroutine rank to another, of which the first record is there.
func pairOf(t *testing.T, n int) (all []*Comm, o *outgoing, i *incoming, k *Call) {
	t.Helper()
	all = comms(t, []string{"a", "a"})
	k = &Call{Record: Record{Count: uint64(n), Kind: SendRecv}, Src: bytesFrom(3, n), Dst: make([]byte, n)}
	out, f := all[0].links.link(t.Context(), 1, pointToPoint)
	require.Nil(t, f)
	in, f := all[1].links.link(t.Context(), 0, pointToPoint)
	require.Nil(t, f)
	ok, f := all[1].links.ready(in)
	require.Nil(t, f)
	require.True(t, ok)
	o, i = &outgoing{l: out, hash: 5, left: k.Src}, &incoming{l: in, hash: 5, left: make([]byte, n)}
	require.True(t, all[0].links.sendHere(o, k))
	return all, o, i, k
}

func TestRendezvous(t *testing.T) {
	all, o, i, k := pairOf(t, 100_000)
	require.EqualValues(t, recordOffer, i.l.from.cell().record())
	to := i.left
	require.False(t, all[0].links.sendHere(o, k), "nobody has answered yet")
	moved, f := all[1].links.receiveHere(t.Context(), i, k)
	require.Nil(t, f)
	require.True(t, moved)
	require.True(t, i.done)
	require.Equal(t, k.Src, to)
	o.withdraw() // too late to change anything
	assert.EqualValues(t, fetched, i.l.from.rendezvous().state&7)
}

// A sender whose call has failed may change its memory, so what is read after that does not count.
func TestRendezvousWithdrawn(t *testing.T) {
	all, o, i, k := pairOf(t, 100_000)
	o.withdraw()
	clear(k.Src)
	_, f := all[1].links.receiveHere(t.Context(), i, k)
	require.NotNil(t, f)
	assert.Equal(t, Backend, f.Code)
	assert.Equal(t, 0, f.Peer)
	assert.False(t, i.done)
}

// What the receiver does not fetch goes through the pipe: this message, or all of them.
func TestRendezvousRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		refuse func(t *testing.T, c *Comm, i *incoming, k *Call)
		later  bool // messages are offered again
	}{
		{"as a stream", func(t *testing.T, _ *Comm, i *incoming, _ *Call) {
			n, err := i.l.from.TryRecv(make([]byte, headBytes))
			require.NoError(t, err)
			require.Zero(t, n)
		}, true},
		{"memory of another process that cannot be read", func(t *testing.T, c *Comm, i *incoming, k *Call) {
			i.l.from.rendezvous().number++ // the same number of the process, as in another container
			moved, f := c.links.receiveHere(t.Context(), i, k)
			require.Nil(t, f)
			require.True(t, moved)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, o, i, k := pairOf(t, 100_000)
			to := i.left
			tc.refuse(t, all[1], i, k)
			require.False(t, i.done)
			for !i.done {
				all[0].links.sendHere(o, k)
				_, f := all[1].links.receiveHere(t.Context(), i, k)
				require.Nil(t, f)
			}
			require.True(t, o.done)
			require.Equal(t, k.Src, to)
			next := &outgoing{l: o.l, hash: 5, left: k.Src}
			require.True(t, all[0].links.sendHere(next, k))
			assert.Equal(t, tc.later, i.l.from.cell().record() == recordOffer)
		})
	}
}

// Where a call need not wait for the other end, it goes through the pipe.
func TestOffers(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind Kind
		n    int
		want bool
	}{
		{"small", SendRecv, tuning.ReadMessageFrom - 1, false},
		{"both ways", SendRecv, tuning.ReadMessageFrom, true},
		{"both ways, large", SendRecv, tuning.ReadAsideFrom, true},
		{"what a pipe holds", Send, tuning.PipeMax, false},
		{"more", Send, tuning.PipeMax + 1, true},
		{"so much that two who copy are faster", Send, tuning.ReadRootTo + 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c Links
			o := &outgoing{l: &link{to: &pipeWriter{}}, left: make([]byte, tc.n)}
			k := &Call{Record: Record{Kind: tc.kind}, Src: o.left}
			assert.Equal(t, tc.want, c.offers(o, k))
			k.Dst = k.Src
			assert.Equal(t, tc.want && (tc.kind == Send || tc.n >= tuning.ReadAsideFrom), c.offers(o, k), "in place")
		})
	}
}
