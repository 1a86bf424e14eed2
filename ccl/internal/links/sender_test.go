package links

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// drip is an outlet that takes so many bytes at a time.
type drip struct {
	room []int
	got  []byte
}

func (d *drip) TrySend(b []byte) (int, error) {
	if len(d.room) == 0 {
		return 0, nil
	}
	n := min(d.room[0], len(b))
	d.room = d.room[1:]
	d.got = append(d.got, b[:n]...)
	return n, nil
}

// What leaves is the header and then the payload, as far as there is room; what has left is counted, so that only that may
// change.
func TestSender(t *testing.T) {
	for _, tc := range []struct {
		name  string
		n     int
		room  []int
		moved []int // bytes of the payload that have left, after each step
		done  bool
	}{
		{"no payload", 0, []int{HeadBytes}, []int{0}, true},
		{"a small payload, which is a copy", 100, []int{HeadBytes + 100}, []int{100}, true},
		{"a small one, in pieces", 100, []int{50, 100, HeadBytes - 50}, []int{100, 100, 100}, true},
		{"as large as goes beside the header", tuning.HeaderPayload, []int{9000}, []int{tuning.HeaderPayload}, true},
		{"a large one", 5000, []int{HeadBytes, 3000, 2000}, []int{3000, 5000}, true},
		{"a large one, of which some is left", 5000, []int{HeadBytes, 3000}, []int{3000}, false},
		{"half of a header", 5000, []int{40}, []int{0}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &drip{room: tc.room}
			l := &Link{out: d}
			var c messages
			var s sender
			h := aHead()
			payload := bytesFrom(1, tc.n)
			s.start(l, &h, payload)
			require.EqualValues(t, tc.n, h.bytes)
			require.EqualValues(t, 1, l.outNext)
			for _, want := range tc.moved {
				moved, f := c.progressOut(t.Context(), &s)
				require.Nil(t, f)
				require.True(t, moved)
				require.Equal(t, want, s.moved())
			}
			if !tc.done {
				moved, f := c.progressOut(t.Context(), &s)
				require.Nil(t, f)
				require.False(t, moved, "there is no room")
			}
			require.Equal(t, tc.done, s.done)
			require.Equal(t, tc.done, l.outTurn == 1)
			var head [HeadBytes]byte
			h.encode(head[:])
			whole := append(head[:], payload...)
			require.Equal(t, whole[:len(d.got)], d.got)
			require.Equal(t, tc.done, len(d.got) == len(whole))
		})
	}
}

// Messages of a link leave one after another, and one that confirms a message not before that has come.
func TestSendersTakeTurns(t *testing.T) {
	d := &drip{room: []int{1 << 20, 1 << 20, 1 << 20}}
	l := &Link{out: d}
	var c messages
	var first, second sender
	h := aHead()
	first.start(l, &h, nil)
	second.start(l, &h, []byte("abc"))
	behind := new(receiver)
	first.behind = behind
	for _, s := range []*sender{&second, &first} {
		moved, f := c.progressOut(t.Context(), s)
		require.Nil(t, f)
		assert.False(t, moved)
	}
	behind.done = true
	for _, s := range []*sender{&first, &second} {
		moved, f := c.progressOut(t.Context(), s)
		require.Nil(t, f)
		assert.True(t, moved)
		assert.True(t, s.done)
	}
	assert.Len(t, d.got, 2*HeadBytes+3)
}
