package rounds

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	this "github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// ringOf makes the ring of what one rank alone sends so large, for a test; 0: as small as it can be.
func ringOf(t *testing.T, bytes int) {
	here := this.CPU.Ring
	this.CPU.Ring = bytes
	t.Cleanup(func() { this.CPU.Ring = here })
}

// swapFrom makes two ranks swap the lines of their slots, or not, for a test.
func swapFrom(t *testing.T, swap bool) {
	here := this.CPU.SwapFrom
	t.Cleanup(func() { this.CPU.SwapFrom = here })
	this.CPU.SwapFrom = 0
	if swap {
		this.CPU.SwapFrom = tuning.LineFrom
	}
}

// Whatever their sizes, the pieces that may be under way at once do not overlap, and all ranks know where each is.
func TestPieces(t *testing.T) {
	for _, tc := range []struct{ ring, ranks, largest, under int }{
		{0, 2, tuning.StreamPiece, tuning.StreamDepth},
		{2 << 20, 2, tuning.StreamPiece, tuning.StreamDepth},
		{2 << 20, 3, tuning.SentTo(3), int(tuning.SlotDepth(3))},
		{2 << 20, 8, tuning.SentTo(8), int(tuning.SlotDepth(8))},
	} {
		t.Run(fmt.Sprintf("%d ranks, a ring of at least %d bytes", tc.ranks, tc.ring), func(t *testing.T) {
			ringOf(t, tc.ring)
			all := ranksOf(t, tc.ranks, byStage)
			mem, f := all[0].staging.ringOf(0)
			require.Nil(t, f)
			random := rand.New(rand.NewPCG(1, 2))
			type piece struct{ from, to uintptr }
			var under []piece
			wraps := 0
			for i := range 20 * len(mem) / tc.largest {
				n := tc.largest
				if i/100%2 == 1 { // a hundred of the largest, then a hundred of any size
					n = 1 + random.IntN(tc.largest)
				}
				at, f := all[0].staging.piece(0, n)
				require.Nil(t, f)
				from := uintptr(at) - uintptr(op.Ptr(mem))
				for _, c := range all[1:] {
					at, f := c.staging.piece(0, n)
					require.Nil(t, f)
					require.Equal(t, from, uintptr(at)-uintptr(op.Ptr(c.staging.sent.mem[0])))
				}
				require.LessOrEqual(t, from+uintptr(n), uintptr(len(mem)))
				require.Zero(t, from%64)
				for _, p := range under {
					require.False(t, from < p.to && p.from < from+uintptr(n), "[%d, %d) overlaps %v", from, from+uintptr(n), p)
				}
				if len(under) > 0 && from < under[len(under)-1].from {
					wraps++
				}
				under = append(under, piece{from, from + uintptr(n)})
				under = under[max(0, len(under)-(tc.under-1)):]
			}
			require.Greater(t, wraps, 5)
		})
	}
}

// A rank that broadcasts vectors of all sizes, as fast as the others let it, overwrites nothing that one of them has yet to read,
// and runs ahead of them by all slots.
func TestSentKeepsWhatIsUnread(t *testing.T) {
	ringOf(t, 2<<20)
	const calls = 1000
	for _, n := range []int{2, 3, 8} {
		all := ranksOf(t, n, byStage)
		sizes := rand.New(rand.NewPCG(1, 2))
		var counts [calls]int
		for i := range counts {
			counts[i] = 1 + sizes.IntN(tuning.SentTo(3)/4)
			if i%3 == 0 {
				counts[i] = 1 + sizes.IntN(100)
			}
		}
		var ahead uint32
		atOnce(t, all, func(c *Team) *call.Fault {
			pause := rand.New(rand.NewPCG(3, uint64(c.me)))
			for i, count := range counts {
				dst := make([]int32, count)
				if c.me == 0 {
					dst = vector(i, 0, count)
				}
				if f := run(t, c, callOf(call.Broadcast, 0, count, dst, nil)); f != nil {
					return f
				}
				if c.me == 0 {
					ahead = max(ahead, c.rank.Order.Round-c.slots.seen)
				} else {
					same(t, vector(i, 0, count), dst, "rank %d, call %d", c.me, i)
				}
				if pause.IntN(10) == 0 {
					runtime.Gosched()
				}
			}
			return run(t, c, barrier())
		})
		assert.Greater(t, ahead, uint32(3), "%d ranks", n)
	}
}

// What one rank alone sends lies in its ring up to a larger size, with 3 to 8 ranks, and whatever its size where that is large.
func TestLayoutSent(t *testing.T) {
	for _, tc := range []struct {
		ring                 int
		ranks, block, blocks int
		length, inSlot       int
	}{
		{0, 2, 2 << 10, 1, 2 << 10, 2 << 10},
		{0, 2, 2<<10 + 1, 1, 128 << 10, noSlot},
		{0, 3, 32 << 10, 1, 32 << 10, 32 << 10},
		{0, 3, 32<<10 + 1, 1, 128 << 10, noSlot},
		{0, 8, 4 << 10, 8, 4 << 10, 32 << 10},
		{0, 8, 4<<10 + 1, 8, 16 << 10, noSlot},
		{0, 9, 2 << 10, 1, 2 << 10, 2 << 10},
		{0, 9, 2<<10 + 1, 1, 128 << 10, noSlot},
		{2 << 20, 2, 2<<10 + 1, 1, 128 << 10, noSlot},
		{2 << 20, 3, 32 << 10, 1, 32 << 10, 32 << 10},
		{2 << 20, 3, 32<<10 + 1, 1, 16<<10 + 64, 16<<10 + 64},
		{2 << 20, 4, 1 << 20, 1, 32 << 10, 32 << 10},
		{2 << 20, 4, 1 << 20, 3, 10<<10 + 576, 31<<10 + 704},
		{2 << 20, 8, 5 << 10, 7, 2<<10 + 512, 17<<10 + 512},
		{2 << 20, 9, 2<<10 + 1, 1, 128 << 10, noSlot},
	} {
		ringOf(t, tc.ring)
		c := ranksOf(t, tc.ranks, byDirect)[0]
		length, inSlot := c.staging.layoutSent(tc.block, tc.blocks)
		assert.Equal(t, []int{tc.length, tc.inSlot}, []int{length, inSlot}, "%d blocks of %d bytes, %d ranks", tc.blocks, tc.block, tc.ranks)
	}
}

// A Reduce whose ranks outnumber their cores goes through their rings up to some size, and each of up to 8 ranks has as much.
func TestLayoutReduced(t *testing.T) {
	for _, tc := range []struct {
		crowded        bool
		ranks, n       int
		length, inSlot int
	}{
		{true, 3, 8 << 10, 8 << 10, 8 << 10},
		{true, 3, 8<<10 + 8, 8<<10 + 64, 8<<10 + 64},
		{true, 4, 128 << 10, 32 << 10, 32 << 10},
		{true, 4, 128<<10 + 8, 128 << 10, noSlot},
		{true, 8, 40 << 10, 20 << 10, 20 << 10},
		{true, 8, 64<<10 + 8, 128 << 10, noSlot},
		{true, 9, 8 << 10, 128 << 10, noSlot},
		{false, 4, 8 << 10, 8 << 10, 8 << 10},
		{false, 4, 8<<10 + 8, 128 << 10, noSlot},
	} {
		c := ranksOf(t, tc.ranks, byDirect)[0]
		c.local.Crowded = tc.crowded
		length, inSlot := c.staging.layoutReduced(tc.n)
		assert.Equal(t, []int{tc.length, tc.inSlot}, []int{length, inSlot}, "%d bytes, %d ranks, crowded: %v", tc.n, tc.ranks, tc.crowded)
	}
}
