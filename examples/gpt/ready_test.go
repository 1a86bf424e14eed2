package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank holds at least what its model and its rows take.
func TestRoom(t *testing.T) {
	for _, tc := range []struct {
		args   string
		np     int
		lo, hi float64 // MB of a rank
	}{
		{"-preset gpt2-85m -context 64 -rows 4", 4, 16 * 85.06, 16*85.06 + 60},
		{"-preset gpt2-85m -context 64 -rows 4 -zero 1", 4, 10 * 85.06, 10*85.06 + 60},
		{"-preset gpt2-85m -context 64 -rows 4 -zero 2", 4, 7 * 85.06, 7*85.06 + 60},
		{"-preset gpt2-85m -context 64 -rows 4 -zero 3", 4, 4 * 85.06, 4*85.06 + 60},
		{"-preset gpt2-85m -context 64 -rows 4 -zero 3 -bf16", 4, 4 * 85.06, 4*85.06 + 60},
		{"-preset gpt2-85m -context 64 -rows 4 -tp 4", 4, 16 * 85.06 / 4, 16*85.06/4 + 120},
		{"-preset gpt2-85m -context 64 -rows 4 -pp 4", 4, 16 * 85.06 / 4, 16*85.06/4 + 120},
		{"-layers 1 -width 64 -heads 4 -context 1000 -rows 100", 1, 4 * 100 * 4, 4*100*4 + 600}, // the weights of attention
		{"-layers 1 -width 64 -heads 4 -context 1000 -rows 100 -sp ring=2", 2, 10, 400},         // which a ring does not keep
		{"-layers 12 -width 64 -heads 4 -context 1000 -rows 10", 1, 12 * 160, 12*160 + 2000},
		{"-layers 12 -width 64 -heads 4 -context 1000 -rows 10 -recompute", 1, 160, 160 + 200}, // one layer at a time
		// of experts a rank has its part, which zero shards over the replicas that have the same ones
		{"-layers 2 -width 64 -heads 4 -context 64 -rows 4 -experts 8 -ep 4 -zero 3", 4, 16 * .131, 16*.131 + 2},
		{"-layers 2 -width 64 -heads 4 -context 64 -rows 4 -experts 8 -ep 2 -zero 3", 4, 16 * .131, 16*.131 + 2},
		{"-layers 2 -width 64 -heads 4 -context 64 -rows 4 -experts 8 -ep 2", 4, 16 * .262, 16*.262 + 3},
		{"-layers 2 -width 64 -heads 4 -context 64 -rows 4 -experts 8 -ep 2 -tp 2", 4, 16 * .131, 16*.131 + 3},
		{"-layers 1 -width 64 -heads 4 -context 1000 -rows 50 -experts 4 -top 4", 1, 4 * 50 * (4 + .064*(20-12+14*4)), 1700}, // their rows
	} {
		c := words(t, tc.args)
		require.NoError(t, c.place(tc.np))
		got := c.memory(65) / 1e6
		require.Greater(t, got, tc.lo, tc.args)
		require.Less(t, got, tc.hi, tc.args)
		require.NoError(t, c.room(tc.np, 65, 0, 0), "not known")
		require.NoError(t, c.room(tc.np, 65, 0, got*1e6*float64(tc.np)+1))
		require.ErrorContains(t, c.room(tc.np, 65, 0, got*1e6*float64(tc.np)-1), "a smaller model")
		require.ErrorContains(t, c.room(tc.np, 65, 2, got*1e6*float64(tc.np)+1), "a smaller model", "each rank has the data")
	}
	for _, args := range []string{"-width 1000000000 -heads 4", "-layers 1000000000 -width 65536 -heads 4", "-rows 1000000000 -context 1000000000"} { // more than an int64 counts
		c := words(t, args)
		require.NoError(t, c.place(1))
		require.ErrorContains(t, c.room(1, 93, 0, 1e12), "a smaller model", args)
	}
	if runtime.GOOS == "linux" {
		require.Greater(t, installed(), resident())
		require.Greater(t, resident(), 1e6)
	}
}

func TestAdopt(t *testing.T) {
	c := words(t, "-tp 2")
	require.NoError(t, c.adopt(4, 4))
	require.Equal(t, 2, c.dp)
	require.ErrorContains(t, words(t, "-tp 2").adopt(3, 3), "start 2, or 4")
	require.ErrorContains(t, words(t, "-np 3 -rows 12").adopt(4, 4), "the launcher has started 4 ranks")
}

func TestNearest(t *testing.T) {
	for _, tc := range [][3]int{{4, 3, 2}, {12, 5, 4}, {12, 7, 6}, {12, 100, 12}, {7, 3, 1}, {128, 100, 128}, {1, 1, 1}, {1 << 62, 3, 2}} {
		require.Equal(t, tc[2], nearest(tc[0], tc[1]), "%v", tc)
	}
}
