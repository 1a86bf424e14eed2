package links

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The shares of a message are all of it, in order; none is empty, the first is as large as what may come with its header, and
// each begins between elements.
func TestShare(t *testing.T) {
	for lanes := 2; lanes <= lanesMost; lanes++ {
		for _, over := range []int{0, 1, 4095, 4096, 4097, laneLeast - 1} {
			b := make([]byte, lanes*laneLeast+over)
			end := 0
			for lane := range lanes {
				from, part := share(b, lanes, lane)
				require.Equal(t, end, from, "%d lanes, lane %d", lanes, lane)
				require.Zero(t, from%4096)
				require.NotEmpty(t, part)
				require.Same(t, &b[from], &part[0])
				end = from + len(part)
			}
			require.Equal(t, len(b), end)
			_, first := share(b, lanes, 0)
			require.GreaterOrEqual(t, len(first), tuning.SyscallPiece)
		}
	}
}

func TestValidLanes(t *testing.T) {
	for _, tc := range []struct {
		lanes, lane uint8
		bytes       uint64
		want        bool
	}{
		{0, 0, 0, true}, {0, 0, 1 << 40, true}, {0, 1, 1 << 40, false}, {1, 0, 1 << 40, false},
		{2, 0, 2 * laneLeast, true}, {2, 1, 2 * laneLeast, true}, {2, 2, 2 * laneLeast, false}, {2, 0, 2*laneLeast - 1, false},
		{lanesMost, lanesMost - 1, 1 << 40, true}, {lanesMost + 1, 0, 1 << 40, false}, {255, 254, 1<<64 - 1, false},
	} {
		assert.Equal(t, tc.want, validLanes(tc.lanes, tc.lane, tc.bytes), "%+v", tc)
	}
}

// A message that is far from its receiver takes several lanes, unless somebody says otherwise, and no more than it has shares.
func TestLanesFor(t *testing.T) {
	for _, tc := range []struct {
		roundTrip time.Duration
		asked     int
		want      int
	}{
		{0, -1, 1}, {30 * time.Microsecond, -1, 1}, {laneTrip, -1, 1}, {2*laneTrip - 1, -1, 1}, {2 * laneTrip, -1, 2}, {5 * laneTrip, -1, 5}, {time.Second, -1, tripMost},
		{0, 4, 4}, {time.Second, 1, 1}, {0, lanesMost, lanesMost}, {0, lanesMost + 1, lanesMost},
	} {
		assert.Equal(t, tc.want, lanesFor(tc.roundTrip, tc.asked), "%+v", tc)
	}
	l := &Link{lanes: make([]*Link, 4)}
	for _, tc := range []struct {
		bytes  int
		shares int32
		want   uint8
	}{{0, 0, 0}, {2*laneLeast - 1, 0, 0}, {2 * laneLeast, 0, 2}, {4*laneLeast - 1, 0, 3}, {1 << 30, 0, 4}, {1 << 30, 1, 0}} {
		assert.Equal(t, tc.want, l.lanesOf(&head{shares: tc.shares}, tc.bytes), "%+v", tc)
	}
	assert.Zero(t, new(Link).lanesOf(&head{}, 1<<30))
}

// What has left of a message that is spread counts as far as it lies together from some place on.
func TestMovedFrom(t *testing.T) {
	l := new(Link)
	const size = 100
	for _, tc := range []struct {
		name string
		out  [3]int // of each share
		want [4]int // that lie together from 0, 100, 150 and 200 on
	}{
		{"nothing", [3]int{}, [4]int{}},
		{"some of the first", [3]int{60, 0, 0}, [4]int{60, 0, 0, 0}},
		{"the first", [3]int{100, 0, 0}, [4]int{100, 0, 0, 0}},
		{"the first and some of the second", [3]int{100, 70, 0}, [4]int{170, 70, 20, 0}},
		{"some of each", [3]int{10, 20, 30}, [4]int{10, 20, 0, 30}},
		{"the last two", [3]int{0, 100, 100}, [4]int{0, 200, 150, 100}},
		{"all", [3]int{100, 100, 100}, [4]int{300, 200, 150, 100}},
	} {
		var s [3]sender
		for i := range s {
			s[i].l, s[i].out, s[i].spread.from, s[i].done = l, tc.out[i], i*size, tc.out[i] == size
			if i > 0 {
				s[i-1].spread.next = &s[i]
			}
		}
		for i, at := range []int{0, 100, 150, 200} {
			assert.Equal(t, tc.want[i], s[0].movedFrom(at), "%s, from %d on", tc.name, at)
		}
		assert.Equal(t, tc.name == "all", s[0].allDone(), tc.name)
	}
}

// A message has come when all its shares have, and not before it is known which there are.
func TestAllDone(t *testing.T) {
	second := &receiver{}
	first := &receiver{done: true}
	require.True(t, first.allDone())
	first.narrowTo(t, 2)
	require.False(t, first.allDone(), "the second share is not begun")
	first.spread.next = second
	require.False(t, first.allDone())
	second.done = true
	require.True(t, first.allDone())
}

func (r *receiver) narrowTo(t *testing.T, lanes int) {
	t.Helper()
	r.to = make([]byte, lanes*laneLeast)
	r.narrow(lanes)
	require.Len(t, r.to, laneLeast)
	require.Len(t, r.spread.whole, lanes*laneLeast)
}
