package ddp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

func TestBroadcastAndSame(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		a, b := []float32{float32(c.Rank()), 2}, []ccl.BFloat16{ccl.BFloat16(c.Rank())}
		require.EqualError(t, ddp.Same(t.Context(), c, uint64(c.Rank()/2)), "ddp: the replicas differ: ranks [2] of 3 hold different bits from the rest")
		require.NoError(t, ddp.Broadcast(t.Context(), c, []ccl.Buf{ccl.BufOf(a), ccl.BufOf(b)}, 1))
		require.Equal(t, []float32{1, 2}, a)
		require.Equal(t, []ccl.BFloat16{1}, b)
		require.NoError(t, ddp.Same(t.Context(), c, ddp.Hash(a)))
	}, ccltest.Hosts(3))
}

// A Broadcast whose context ends ends that of the others, and leaves the memory to the caller.
func TestBroadcastGivesUp(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c, x := ccltest.Split(t, world, 0, 0), []float32{float32(world.Rank())}
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			err := ddp.Broadcast(ctx, c, []ccl.Buf{ccl.BufOf(x)}, 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "ddp: Broadcast: ")
		}
		ccltest.Barrier(t, world)
		if c.Rank() == 1 {
			err := ddp.Broadcast(t.Context(), c, []ccl.Buf{ccl.BufOf(x)}, 1)
			require.ErrorContains(t, err, "aborted by rank 0: ")
		}
		ccltest.Barrier(t, world)
		require.Equal(t, []float32{float32(c.Rank())}, x)
	})
}

func TestHash(t *testing.T) {
	require.Equal(t, uint64(0xcbf43926e3069283), ddp.Hash([]uint8("123456789")), "CRC-32 and CRC-32C, by their published checks")
	require.Equal(t, ddp.Hash([]float32{1, 2, 3}), ddp.Hash([]float32{1}, nil, []float32{2, 3}))
	require.NotEqual(t, ddp.Hash([]float32{0}), ddp.Hash([]float32{float32(negative * 0)}))
}

// Each bit counts, wherever it is; where a slice is cut does not.
func TestHashFindsABit(t *testing.T) {
	s := make([]uint8, 3*16<<10+5)
	whole, seen := ddp.Hash(s), map[uint64]bool{}
	for _, cut := range []int{1, 16<<10 - 1, 16 << 10, 16<<10 + 1, len(s)} {
		require.Equal(t, whole, ddp.Hash(s[:cut], s[cut:]))
		require.False(t, cut < len(s) && ddp.Hash(s[:cut]) == whole, "zeros at the end count")
	}
	seen[whole] = true
	for at := 0; at < len(s); at += 101 {
		for bit := range 8 {
			s[at] ^= 1 << bit
			h := ddp.Hash(s)
			require.False(t, seen[h] || uint32(h) == uint32(whole) || h>>32 == whole>>32, "bit %d of byte %d", bit, at)
			seen[h] = true
			s[at] ^= 1 << bit
		}
	}
}

func BenchmarkHash(b *testing.B) {
	s := make([]float32, 16<<20)
	b.SetBytes(int64(4 * len(s)))
	for b.Loop() {
		ddp.Hash(s)
	}
}

var negative = -1.0
