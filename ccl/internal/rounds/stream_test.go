package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	this "github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// A stream carries each size as it is, either way, and reduces it where asked, in the order of ranks.
func TestStream(t *testing.T) {
	all := ranksOf(t, 2, byStage)
	for _, n := range []int{0, 8, tuning.BesideFlag, tuning.BesideFlag + 8, tuning.Inline(2), tuning.Inline(2) + 4, tuning.StreamPiece, tuning.StreamPiece + 4,
		this.CPU.StreamTo, this.CPU.StreamTo + 4, all[0].staging.chunk + 4, 3*all[0].staging.chunk + 40} {
		for from := range 2 {
			for _, reduced := range []bool{false, true} {
				atOnce(t, all, func(c *Team) *call.Fault {
					v, want := vector(c.me, 0, n/4), vector(from, 0, n/4)
					k := callOf(call.Reduce, 1-from, n/4, make([]int32, n/4), v)
					k.Fold, k.Stream = minus, minus
					enter(c, k)
					defer c.rank.Wake()
					if c.me == from {
						return c.stream.sendStream(t.Context(), k, k.Src)
					}
					own := op.Ptr(k.Src)
					if !reduced {
						own = nil
					} else {
						want = difference(2, n/4)
					}
					dst := make([]int32, n/4)
					f := c.stream.receiveStream(t.Context(), k, bytesOf(dst), own)
					same(t, want, dst, "%d bytes from %d, reduced %v", n, from, reduced)
					return f
				})
			}
		}
	}
}

// A vector up to StreamTo goes in pieces, of which many may be under way, and a larger one in chunks.
func TestPieceOf(t *testing.T) {
	c := ranksOf(t, 2, byStage)[0]
	for _, tc := range []struct{ n, want int }{
		{tuning.Inline(2) + 1, tuning.StreamPiece}, {this.CPU.StreamTo, tuning.StreamPiece}, {this.CPU.StreamTo + 1, tuning.StageChunk(2)},
	} {
		assert.Equal(t, tc.want, c.stream.pieceOf(tc.n), "%d bytes", tc.n)
	}
}

// A sender is as many rounds ahead as the kind of slot has, less two, and waits then.
func TestSenderRunsAhead(t *testing.T) {
	for _, tc := range []struct{ n, ahead int }{
		{tuning.Inline(2), int(tuning.SlotDepth(2)) - 2},
		{tuning.Inline(2) + 4, tuning.StreamDepth - 2},
	} {
		all := ranksOf(t, 2, byStage)
		c := all[0]
		src := vector(0, 0, tc.n/4)
		k := callOf(call.Broadcast, 0, tc.n/4, src, nil)
		enter(c, k)
		for range tc.ahead {
			require.Nil(t, c.stream.sendStream(t.Context(), k, k.Dst), "%d bytes", tc.n)
		}
		require.Equal(t, c.rank.Order.Start+uint32(tc.ahead), c.rank.Order.Round)
		require.NotNil(t, c.stream.sendStream(ended(t), k, k.Dst), "%d bytes: it does not wait", tc.n)
	}
}
