package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Each function makes its own call: 3 ranks, of which rank r gives numbers from 10*r+1 on, and what each must have then.
func TestCollectives(t *testing.T) {
	from := func(r, n int) []int32 {
		x := make([]int32, n)
		for i := range x {
			x[i] = int32(10*r + 1 + i)
		}
		return x
	}
	counts := []int{1, 0, 2}
	for _, tc := range []struct {
		name string
		dst  [3]int // elements
		call func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error
		want [3][]int32
	}{
		{"AllReduce", [3]int{2, 2, 2}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.AllReduce(ctx, c, dst, from(r, 2), ccl.Max)
		}, [3][]int32{{21, 22}, {21, 22}, {21, 22}}},
		{"Reduce", [3]int{0, 2, 0}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.Reduce(ctx, c, dst, from(r, 2), ccl.Sum, 1)
		}, [3][]int32{{}, {33, 36}, {}}},
		{"ReduceScatter", [3]int{1, 1, 1}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.ReduceScatter(ctx, c, dst, from(r, 3), ccl.Sum)
		}, [3][]int32{{33}, {36}, {39}}},
		{"ReduceScatterV", [3]int{1, 0, 2}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.ReduceScatterV(ctx, c, dst, from(r, 3), counts, ccl.Min)
		}, [3][]int32{{1}, {}, {2, 3}}},
		{"Broadcast", [3]int{2, 2, 2}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			copy(dst, from(r, 2))
			return ccl.Broadcast(ctx, c, dst, 2)
		}, [3][]int32{{21, 22}, {21, 22}, {21, 22}}},
		{"AllGather", [3]int{3, 3, 3}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.AllGather(ctx, c, dst, from(r, 1))
		}, [3][]int32{{1, 11, 21}, {1, 11, 21}, {1, 11, 21}}},
		{"AllGatherV", [3]int{3, 3, 3}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.AllGatherV(ctx, c, dst, counts, from(r, counts[r]))
		}, [3][]int32{{1, 21, 22}, {1, 21, 22}, {1, 21, 22}}},
		{"Gather", [3]int{3, 0, 0}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.Gather(ctx, c, dst, from(r, 1), 0)
		}, [3][]int32{{1, 11, 21}, {}, {}}},
		{"GatherV", [3]int{0, 3, 0}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.GatherV(ctx, c, dst, counts, from(r, counts[r]), 1)
		}, [3][]int32{{}, {1, 21, 22}, {}}},
		{"Scatter", [3]int{1, 1, 1}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.Scatter(ctx, c, dst, from(r, 3), 1)
		}, [3][]int32{{11}, {12}, {13}}},
		{"ScatterV", [3]int{1, 0, 2}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.ScatterV(ctx, c, dst, from(r, 3), counts, 2)
		}, [3][]int32{{21}, {}, {22, 23}}},
		{"AllToAll", [3]int{3, 3, 3}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.AllToAll(ctx, c, dst, from(r, 3))
		}, [3][]int32{{1, 11, 21}, {2, 12, 22}, {3, 13, 23}}},
		{"AllToAllV", [3]int{3, 0, 6}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			// Each gives rank 0 one, rank 1 none and rank 2 two.
			return ccl.AllToAllV(ctx, c, dst, []int{counts[r], counts[r], counts[r]}, from(r, 3), counts)
		}, [3][]int32{{1, 11, 21}, {}, {2, 3, 12, 13, 22, 23}}},
		{"Send and Recv", [3]int{0, 2, 0}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			switch r {
			case 0:
				return ccl.Send(ctx, c, from(0, 2), 1)
			case 1:
				return ccl.Recv(ctx, c, dst, 0)
			}
			return nil
		}, [3][]int32{{}, {1, 2}, {}}},
		{"SendRecv", [3]int{1, 1, 1}, func(ctx context.Context, c *ccl.Comm, dst []int32, r int) error {
			return ccl.SendRecv(ctx, c, dst, (r+2)%3, from(r, 1), (r+1)%3)
		}, [3][]int32{{21}, {1}, {11}}},
		{"Barrier", [3]int{}, func(ctx context.Context, c *ccl.Comm, _ []int32, _ int) error {
			return ccl.Barrier(ctx, c)
		}, [3][]int32{{}, {}, {}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				dst := make([]int32, tc.dst[c.Rank()])
				require.NoError(t, tc.call(t.Context(), c, dst, c.Rank()))
				require.Equal(t, tc.want[c.Rank()], dst)
			})
		})
	}
}
