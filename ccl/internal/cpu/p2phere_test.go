package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A message is taken only where all that both ends have said of it is the same.
func TestFits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(o *outgoing)
		want   bool
	}{
		{"the same", func(*outgoing) {}, true},
		{"another call before it", func(o *outgoing) { o.seq++ }, false},
		{"another count or type", func(o *outgoing) { o.hash ^= 1 << 31 }, false},
		{"another length", func(o *outgoing) { o.left = o.left[1:] }, false},
		{"the rest of another", func(o *outgoing) { o.begun = true }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{1, cellData, 100, 5000} {
				w, r := pipeEnds(64<<10, 0)
				o := outgoing{l: &link{to: w}, seq: 3, hash: 5, left: bytesFrom(0, n)}
				tc.change(&o)
				var c Links
				require.True(t, c.sendHere(&o, &Call{Record: Record{Count: uint64(n), Kind: Send}}))
				in := incoming{l: &link{from: r}, seq: 3, hash: 5, left: make([]byte, n)}
				assert.Equal(t, tc.want, in.fits(r.cell()))
			}
		})
	}
}

// A message is received piece by piece, as far as there is room for it.
func TestSendAndReceiveHere(t *testing.T) {
	for _, room := range []int{4 << 10, 64 << 10} {
		for _, n := range []int{0, 1, cellData, cellData + 1, 1000, 10_000, 300_000} {
			w, r := pipeEnds(room, 0)
			want := bytesFrom(n, n)
			k := &Call{Record: Record{Count: uint64(n), Kind: Send}}
			o := outgoing{l: &link{to: w}, seq: 3, hash: 5, left: want, piped: true}
			got := make([]byte, n)
			in := incoming{l: &link{from: r}, seq: 3, hash: 5, left: got}
			var c Links
			for !in.done {
				for !o.done && c.sendHere(&o, k) {
				}
				moved, f := c.receiveHere(t.Context(), &in, k)
				require.Nil(t, f)
				require.True(t, moved)
			}
			require.True(t, o.done)
			require.Equal(t, want, got)
			require.Nil(t, r.cell())
		}
	}
}
