//go:build (nccl || rccl) && cgo && linux

package native

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// How many bytes each kind reads and writes, on the root, rank 1, and on rank 2, of 3.
func TestExtent(t *testing.T) {
	counts := []int{1, 2, 3}
	for _, tc := range []struct {
		k                  op.Kind
		root, src, dst     int // on rank 1
		otherSrc, otherDst int // on rank 2
	}{
		{op.AllReduce, -1, 40, 40, 40, 40},
		{op.Reduce, 1, 40, 40, 40, 0},
		{op.ReduceScatter, -1, 120, 40, 120, 40},
		{op.ReduceScatterV, -1, 24, 8, 24, 12},
		{op.Broadcast, 1, 40, 40, 0, 40},
		{op.AllGather, -1, 40, 120, 40, 120},
		{op.AllGatherV, -1, 8, 24, 12, 24},
		{op.Gather, 1, 40, 120, 40, 0},
		{op.GatherV, 1, 8, 24, 12, 0},
		{op.Scatter, 1, 120, 40, 0, 40},
		{op.ScatterV, 1, 24, 8, 0, 12},
		{op.AllToAll, -1, 120, 120, 120, 120},
		{op.AllToAllV, -1, 16, 24, 16, 24},
		{op.Send, 0, 40, 0, 40, 0},
		{op.Recv, 0, 0, 40, 0, 40},
		{op.SendRecv, 0, 20, 40, 20, 40},
		{op.Barrier, -1, 0, 0, 0, 0},
	} {
		c := &op.Call{Head: op.Head{Record: op.Record{Kind: tc.k, Type: op.Float32, Count: 10, Root: int32(tc.root)}, SrcN: 5}, DC: counts, SC: []int{0, 2, 2}}
		for rank, want := range map[int][2]int{1: {tc.src, tc.dst}, 2: {tc.otherSrc, tc.otherDst}} {
			e := &end{lib: &library{v: compiledIn[0]}, group: engine.Group{Rank: rank, Size: 3}}
			src, dst := e.extent(c)
			require.Equal(t, want, [2]int{src, dst}, "kind %v on rank %d", tc.k, rank)
		}
	}
	require.Equal(t, 6, sum(counts))
	require.EqualValues(t, 7, source(&op.Call{Head: op.Head{Record: op.Record{Kind: op.Broadcast}, DstAt: 7}}), "a root may give either")
	require.EqualValues(t, 8, source(&op.Call{Head: op.Head{Record: op.Record{Kind: op.Broadcast}, DstAt: 7, SrcAt: 8}}))
	require.EqualValues(t, 0, source(&op.Call{Head: op.Head{Record: op.Record{Kind: op.Recv}, DstAt: 7}}))
}

// Calls on host memory go through memory on the device, which grows with them, is used again and is given back.
func TestStaging(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		ranks := world(t, v, 2)
		sizes := make([][2]int, 2)
		for i, n := range []int{1000, 10, 1 << 19} { // 1 MiB is the least, and 4 MiB are more
			each(t, 2, func(r int) error {
				src, dst := make([]int32, n), make([]int32, n)
				for j := range src {
					src[j] = int32(j + r)
				}
				var pin runtime.Pinner
				defer pin.Unpin()
				pin.Pin(&src[0])
				pin.Pin(&dst[0])
				err := ranks[r].Run(within(t), []*op.Call{
					{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Op: op.Sum, Root: -1, Count: uint64(n)}, DstAt: addressOf(&dst[0]), SrcAt: addressOf(&src[0])}},
				})
				for j := range dst {
					if want := int32(2*j + 1); dst[j] != want && err == nil {
						t.Errorf("rank %d, element %d: %d, not %d", r, j, dst[j], want)
						break
					}
				}
				if s := stagingOf(ranks[r]); i < 2 {
					sizes[r][i] = s.size
				} else if s.size != 2*4*n {
					t.Errorf("rank %d: %d bytes of staging memory for %d", r, s.size, 2*4*n)
				}
				return err
			})
		}
		for r := range sizes {
			require.Equal(t, [2]int{1 << 20, 1 << 20}, sizes[r], "rank %d", r)
		}
	})
}

func stagingOf(r *rank) *staging { return &r.end().staged }
