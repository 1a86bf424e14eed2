package ddp_test

import (
	"testing"

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

func TestHash(t *testing.T) {
	require.Equal(t, uint64(0xaf63dc4c8601ec8c), ddp.Hash([]uint8("a")), "FNV-1a")
	require.Equal(t, ddp.Hash([]float32{1, 2, 3}), ddp.Hash([]float32{1}, nil, []float32{2, 3}))
	require.NotEqual(t, ddp.Hash([]float32{0}), ddp.Hash([]float32{float32(negative * 0)}))
}

var negative = -1.0
