//go:build (nccl || rccl) && cgo && linux

package native

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// A call reads and writes the elements that it has, and of Broadcast all ranks write, and the root alone reads: rank 1 of 3.
func TestExtent(t *testing.T) {
	for rank, want := range map[int][2]int{1: {20, 40}, 2: {0, 40}} {
		e := &end{lib: &library{v: compiledIn[0]}, group: engine.Group{Rank: rank, Size: 3}}
		for kind, want := range map[op.Kind][2]int{op.Broadcast: want, op.SendRecv: {20, 40}} {
			src, dst := e.extent(&op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: op.Float32, Root: 1}, DstN: 10, SrcN: 5}})
			require.Equal(t, want, [2]int{src, dst}, "%v on rank %d", kind, rank)
		}
	}
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
					{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Op: op.Sum, Root: -1, Count: uint64(n)}, DstAt: addressOf(&dst[0]), SrcAt: addressOf(&src[0]), DstN: n, SrcN: n}},
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
