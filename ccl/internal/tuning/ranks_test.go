package tuning

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRanks(t *testing.T) {
	for _, tc := range []struct {
		n                                   int
		depth                               uint32
		inline, room, chunk, stage, pipe    int
		small, middle, large, whereFlagEnds int
	}{
		{1, 8, 2 << 10, 2 << 10, 128 << 10, 512 << 10, 64 << 10, 8, 32, 64, 56},
		{2, 32, 2 << 10, 4 << 10, 128 << 10, 1 << 20, 64 << 10, 8, 32, 64, 56},
		{3, 8, 8 << 10, 8 << 10, 128 << 10, 512 << 10, 64 << 10, 8, 8, 8, 56},
		{4, 8, 8 << 10, 8 << 10, 128 << 10, 512 << 10, 64 << 10, 8, 8, 8, 56},
		{8, 8, 4 << 10, 4 << 10, 128 << 10, 512 << 10, 64 << 10, 8, 8, 8, 56},
		{9, 8, 2 << 10, 2 << 10, 128 << 10, 512 << 10, 32 << 10, 8, 8, 8, 56},
		{64, 8, 2 << 10, 2 << 10, 64 << 10, 256 << 10, 4 << 10, 8, 8, 8, 56},
		{1024, 8, 2 << 10, 2 << 10, 8 << 10, 32 << 10, 4 << 10, 8, 8, 8, 56},
	} {
		require.Equal(t, tc.depth, SlotDepth(tc.n), tc.n)
		require.Equal(t, 2*tc.depth, CallsKept(tc.n), tc.n)
		require.Equal(t, tc.inline, Inline(tc.n), tc.n)
		require.Equal(t, tc.room, SlotRoom(tc.n), tc.n)
		require.Equal(t, tc.chunk, StageChunk(tc.n), tc.n)
		require.Equal(t, tc.stage, StageBytes(tc.n), tc.n)
		require.Equal(t, tc.pipe, PipeSize(tc.n), tc.n)
		require.Equal(t, []int{tc.small, tc.middle, tc.large}, []int{BehindFlag(tc.n, tc.whereFlagEnds), BehindFlag(tc.n, LineFrom-1), BehindFlag(tc.n, LineFrom)}, tc.n)
	}
}

// What a slot has behind its flag's line is enough for every payload that goes there.
func TestPayloadsFit(t *testing.T) {
	for n := 1; n <= 300; n++ {
		for bytes := 1; bytes <= SlotRoom(n); bytes++ {
			require.LessOrEqual(t, BehindFlag(n, bytes)+bytes, 64+SlotRoom(n), "%d bytes of %d ranks", bytes, n)
		}
	}
}
