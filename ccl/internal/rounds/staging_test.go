package rounds

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Layout puts into slots what all blocks of a rank fit into, and cuts the rest into whole cache lines of each block.
func TestLayout(t *testing.T) {
	for _, tc := range []struct {
		ranks, block, blocks int
		length, inSlot       int
	}{
		{2, 0, 1, 0, 0},
		{2, 8, 1, 8, 8},
		{2, 2 << 10, 1, 2 << 10, 2 << 10},
		{2, 2<<10 + 1, 1, 128 << 10, noSlot},
		{2, 1 << 10, 2, 1 << 10, 2 << 10},
		{2, 1<<10 + 1, 2, 64 << 10, noSlot},
		{3, 8 << 10, 1, 8 << 10, 8 << 10},
		{3, 4 << 10, 2, 4 << 10, 8 << 10},
		{3, 4<<10 + 8, 2, 64 << 10, noSlot},
		{3, 100 << 10, 3, (128 << 10 / 3) &^ 63, noSlot},
		{3, 100, 1 << 12, 32, noSlot}, // less than a cache line: whole elements
		{3, 100, 1 << 14, 8, noSlot},
	} {
		c := ranksOf(t, tc.ranks, byDirect)[0]
		length, inSlot := c.staging.layout(tc.block, tc.blocks)
		assert.Equal(t, []int{tc.length, tc.inSlot}, []int{length, inSlot}, "%d blocks of %d bytes, %d ranks", tc.blocks, tc.block, tc.ranks)
	}
}

// Two ranks that swap the lines of their slots write where they have read the last time that the slot was used; smaller
// payloads, and those of more ranks, stay in the slots of the rank that has them.
func TestSwappedSlots(t *testing.T) {
	swapFrom(t, true)
	for _, n := range []int{2, 3} {
		c := ranksOf(t, n, byStage)[0]
		depth := c.local.Depth
		for _, round := range []uint32{0, 1, depth - 1, depth, 5*depth + 3, ^uint32(0), ^uint32(0) - depth} {
			for r := range 2 {
				require.Equal(t, c.local.Payload(r, round, tuning.LineFrom-1), c.slots.at(r, round, tuning.LineFrom-1))
				if n > 2 {
					require.Equal(t, c.local.Payload(r, round, tuning.LineFrom), c.slots.at(r, round, tuning.LineFrom))
					continue
				}
				require.Equal(t, c.slots.at(1-r, round, tuning.LineFrom), c.slots.at(r, round+depth, tuning.LineFrom), "round %d", round)
				require.NotEqual(t, c.slots.at(r, round, tuning.LineFrom), c.slots.at(r, round+depth, tuning.LineFrom), "round %d", round)
			}
		}
	}
}

// Where the others keep up, a rank uses the first segments of its ring again and again; else it goes on through all.
func TestPlaceReuses(t *testing.T) {
	for _, keepUp := range []bool{true, false} {
		c := ranksOf(t, 4, byDirect)[0]
		room, far := tuning.SlotRoom(4), 0
		for range 3 * tuning.RingSegments(4) / 2 {
			c.rank.Order.Round++
			c.slots.seen = c.rank.Order.Round - 3
			if keepUp {
				c.slots.seen = c.rank.Order.Round - 1
			}
			require.Nil(t, c.slots.place(t.Context(), barrier(), c.rank.Order.Round, room))
			far = max(far, c.slots.ring.segment)
		}
		if keepUp {
			assert.Equal(t, 2, far)
		} else {
			assert.Equal(t, tuning.RingSegments(4)-1, far)
		}
	}
}

// Ranks reduce parts in whole cache lines, which together are the vector.
func TestPart(t *testing.T) {
	for _, tc := range []struct {
		ranks, n int
		ends     []int
	}{
		{2, 0, []int{0, 0}},
		{2, 8, []int{8, 8}},
		{2, 128, []int{64, 128}},
		{2, 132, []int{128, 132}},
		{3, 1000, []int{384, 768, 1000}},
		{5, 130, []int{64, 128, 130, 130, 130}},
	} {
		c := ranksOf(t, tc.ranks, byDirect)[0]
		begin := 0
		for r, end := range tc.ends {
			from, to := c.staging.part(tc.n, r)
			assert.Equal(t, []int{begin, end}, []int{from, to}, "part %d of %d bytes", r, tc.n)
			begin = end
		}
		assert.Equal(t, tc.n, begin)
	}
}

// The staging memory of a rank is made once, by the rank that needs it first, and has a slot for each of StageDepth rounds.
// Of two ranks, each writes in turn where it has read the last time.
func TestStage(t *testing.T) {
	for _, n := range []int{2, 3} {
		all := ranksOf(t, n, byStage)
		at := func(c *Team, r int, round uint32) unsafe.Pointer {
			p, f := c.staging.stage(r, round)
			require.Nil(t, f)
			return p
		}
		base := at(all[0], 1, 0)
		require.Equal(t, base, at(all[1], 1, 0), "two ranks have two of one rank's")
		for round := range uint32(3 * tuning.StageDepth) {
			mine, theirs := at(all[0], 0, round), at(all[0], 1, round)
			turn := round / tuning.StageDepth
			if n > 2 || turn%2 == 0 {
				require.Equal(t, uintptr(round%tuning.StageDepth)*uintptr(all[0].staging.chunk), uintptr(theirs)-uintptr(base))
			}
			if round >= tuning.StageDepth {
				lastMine, lastTheirs := at(all[0], 0, round-tuning.StageDepth), at(all[0], 1, round-tuning.StageDepth)
				require.Equal(t, n == 2, mine == lastTheirs && theirs == lastMine, "round %d", round)
				require.Equal(t, n > 2, mine == lastMine && theirs == lastTheirs, "round %d", round)
			}
		}
		require.Len(t, all[0].staging.lines, n)
		for _, mem := range all[0].staging.lines[:2] {
			require.Len(t, mem, tuning.StageBytes(n), "the memory of two ranks")
		}
	}
}

// What lies in a slot lies in the region; a fetch waits for it and finds it there.
func TestBeginAndFetch(t *testing.T) {
	all := ranksOf(t, 2, byStage)
	for _, n := range []int{8, 1000, noSlot} {
		k := barrier()
		for _, c := range all {
			enter(c, k)
		}
		round, to, f := all[0].staging.begin(t.Context(), k, n)
		require.Nil(t, f)
		all[0].slots.post(k, round)
		from, f := all[1].staging.fetch(t.Context(), k, 0, round, n)
		require.Nil(t, f)
		require.Equal(t, to, from)
		region := all[0].local.Payload(0, round, max(n, 8))
		require.Equal(t, n != noSlot, to == region)
		all[1].rank.Order.Round++ // as the rank that only reads does
		all[1].slots.post(k, round)
	}
}
