package links

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// A message is taken only where all that both ends have said of it is the same.
func TestFits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(o *Outgoing)
		want   bool
	}{
		{"the same", func(*Outgoing) {}, true},
		{"another call before it", func(o *Outgoing) { o.place++ }, false},
		{"another count or type", func(o *Outgoing) { o.Hash ^= 1 << 31 }, false},
		{"another length", func(o *Outgoing) { o.Left = o.Left[1:] }, false},
		{"the rest of another", func(o *Outgoing) { o.begun = true }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{1, cellData, 100, 5000} {
				w, r := pipeEnds(64<<10, 0)
				o := Outgoing{L: &Link{To: w}, place: 3, Hash: 5, Left: bytesFrom(0, n)}
				tc.change(&o)
				var c Links
				require.True(t, c.Pairs.SendHere(&o, &call.Call{Head: op.Head{Record: call.Record{Count: uint64(n), Kind: call.Send}}}))
				in := Incoming{L: &Link{From: r}, place: 3, Hash: 5, Left: make([]byte, n)}
				assert.Equal(t, tc.want, in.fits(r.Cell()))
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
			k := &call.Call{Head: op.Head{Record: call.Record{Count: uint64(n), Kind: call.Send}}}
			o := Outgoing{L: &Link{To: w}, place: 3, Hash: 5, Left: want, piped: true}
			got := make([]byte, n)
			in := Incoming{L: &Link{From: r}, place: 3, Hash: 5, Left: got}
			var c Links
			for !in.Done {
				for !o.Done && c.Pairs.SendHere(&o, k) {
				}
				moved, f := c.Pairs.ReceiveHere(t.Context(), &in, k)
				require.Nil(t, f)
				require.True(t, moved)
			}
			require.True(t, o.Done)
			require.Equal(t, want, got)
			require.Nil(t, r.Cell())
		}
	}
}
