package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestHalving(t *testing.T) {
	wantCosts(t, "halving", []costCase{
		{op.AllReduce, Blocks(2, 1), 0, Cost{2, 4, 1, 1, 1}},
		{op.AllReduce, Blocks(4, 1), 0, Cost{4, 8, 1.5, 1.5, 2}},
		{op.AllReduce, Blocks(8, 1), 0, Cost{6, 12, 1.75, 1.75, 3}},
		{op.AllReduce, Blocks(64, 1), 0, Cost{12, 24, 2 * 63.0 / 64, 2 * 63.0 / 64, 6}},
		// The ranks folded into carry the whole once more each way.
		{op.AllReduce, Blocks(5, 1), 0, Cost{6, 10, 2.5, 2.5, 3}},
		{op.AllReduce, Blocks(12, 1), 0, Cost{8, 14, 2.75, 2.75, 4}},
	})
}

// TestHalvingStaysNear: the large messages are those inside a host. Of each rank's
// 7/8 of the vector each way only the last eighth goes to the other host.
func TestHalvingStaysNear(t *testing.T) {
	messages, parts := crossing(t, "halving", op.AllReduce, Blocks(2, 4), 0)
	require.Equal(t, []int{16, 16}, []int{messages, parts}, "between hosts")
}

func TestHalvingSteps(t *testing.T) {
	wantSteps(t, build(t, "halving", op.AllReduce, Flat(4), 0)[1],
		both(to(0, 0, 2), add(0, 2, 4)),
		both(to(3, 3, 4), add(3, 2, 3)), // part 2 is complete
		both(to(3, 2, 3), from(3, 3, 4)),
		both(to(0, 2, 4), from(0, 0, 2)))
}
