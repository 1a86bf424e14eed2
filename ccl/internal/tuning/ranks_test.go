package tuning

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRanks(t *testing.T) {
	for _, tc := range []struct {
		n                                          int
		depth                                      uint32
		inline, room, chunk, stage, pipe, segments int
	}{
		{1, 8, 2 << 10, 2 << 10, 128 << 10, 512 << 10, 64 << 10, 16},
		{2, 32, 2 << 10, 4 << 10, 128 << 10, 512 << 10, 64 << 10, 16},
		{3, 64, 8 << 10, 8 << 10, 128 << 10, 512 << 10, 64 << 10, 64},
		{4, 64, 8 << 10, 8 << 10, 128 << 10, 512 << 10, 64 << 10, 64},
		{8, 64, 4 << 10, 4 << 10, 128 << 10, 512 << 10, 64 << 10, 64},
		{9, 32, 2 << 10, 2 << 10, 128 << 10, 512 << 10, 32 << 10, 16},
		{64, 32, 2 << 10, 2 << 10, 64 << 10, 256 << 10, 4 << 10, 16},
		{1024, 8, 2 << 10, 2 << 10, 16 << 10, 64 << 10, 4 << 10, 8},
	} {
		require.Equal(t, tc.depth, SlotDepth(tc.n), tc.n)
		require.Equal(t, 2*tc.depth, CallsKept(tc.n), tc.n)
		require.Equal(t, tc.inline, Inline(tc.n), tc.n)
		require.Equal(t, tc.room, SlotRoom(tc.n), tc.n)
		require.Equal(t, tc.chunk, StageChunk(tc.n), tc.n)
		require.Equal(t, tc.stage, StageBytes(tc.n), tc.n)
		require.Equal(t, tc.segments, RingSegments(tc.n), tc.n)
		require.GreaterOrEqual(t, SentTo(tc.n), tc.inline, tc.n)
		if tc.n > 2 { // what is sent next finds room while the others read two such payloads
			require.LessOrEqual(t, 3*SentTo(tc.n), tc.segments*tc.room, tc.n)
		}
		require.Equal(t, tc.pipe, PipeSize(tc.n), tc.n)
	}
}

// The ring of what one rank alone sends holds one more of the largest pieces than may be under way.
func TestSentRing(t *testing.T) {
	for _, ring := range []int{0, 2 << 20, 8 << 20} {
		l := Layout{Ring: ring}
		require.Zero(t, l.SentRing(1))
		require.GreaterOrEqual(t, l.SentRing(2), max(ring, (StreamDepth+1)*StreamPiece))
		for n := 3; n <= 8; n++ {
			if ring == 0 {
				require.Zero(t, l.SentRing(n))
				require.Equal(t, SentTo(n), l.SentMost(n))
			} else {
				require.GreaterOrEqual(t, l.SentRing(n), max(ring, int(SlotDepth(n)+1)*SentTo(n)))
				require.Greater(t, l.SentMost(n), SentTo(n))
			}
		}
		require.Zero(t, l.SentRing(9))
		require.Equal(t, SentTo(9), l.SentMost(9))
	}
}
