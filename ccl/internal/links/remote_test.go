package links

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// remote has, for each collective, what rank r of n begins with and ends with. A block has count elements.
var remote = []struct {
	kind      call.Kind
	src, want func(r, n, root, count int) []int32
}{
	{call.AllReduce, one, func(_, n, _, count int) []int32 { return sumOf(n, 0, count) }},
	{call.Reduce, one, func(r, n, root, count int) []int32 { return at(r, root, sumOf(n, 0, count)) }},
	{call.ReduceScatter, perRank, func(r, n, _, count int) []int32 { return sumOf(n, r, count) }},
	{call.Broadcast, func(r, _, root, count int) []int32 { return at(r, root, vector(root, 0, count)) }, func(_, _, root, count int) []int32 { return vector(root, 0, count) }},
	{call.AllGather, one, func(_, n, _, count int) []int32 { return all(n, count) }},
	{call.Gather, one, func(r, n, root, count int) []int32 { return at(r, root, all(n, count)) }},
	{call.Scatter, func(r, n, root, count int) []int32 { return at(r, root, perRank(root, n, root, count)) }, func(r, _, root, count int) []int32 { return vector(root, r, count) }},
	{call.AllToAll, perRank, func(r, n, _, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, r, count) }) }},
}

func one(r, _, _, count int) []int32 { return vector(r, 0, count) }

func all(n, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, 0, count) }) }

func perRank(r, n, _, count int) []int32 {
	return blocks(n, func(q int) []int32 { return vector(r, q, count) })
}

// at is v at the root, and nothing elsewhere.
func at(r, root int, v []int32) []int32 {
	if r != root {
		return nil
	}
	return v
}

// Every collective gives each rank what is its own, by schedules, whatever the number of ranks, the size and the root.
func TestRunRemote(t *testing.T) {
	for _, tc := range remote {
		for _, n := range []int{2, 3, 5} {
			t.Run(fmt.Sprintf("kind %d, %d ranks", tc.kind, n), func(t *testing.T) {
				ranks := ranksOf(t, n, plane.Options{})
				for _, count := range []int{0, 1, 500, 40_000} {
					for _, root := range []int{0, n - 1} {
						atOnce(t, ranks, func(c *Links) *call.Fault {
							r := c.Rank()
							src, want := tc.src(r, n, root, count), tc.want(r, n, root, count)
							dst := make([]int32, len(want))
							if tc.kind == call.Broadcast {
								copy(dst, src)
							}
							kept := append([]int32(nil), src...)
							f := made(c, callOf(tc.kind, root, count, dst, src), c.RunRemote)
							same(t, want, dst, "rank %d of root %d, %d elements", r, root, count)
							same(t, kept, src, "the operand of rank %d, %d elements", r, count)
							return f
						})
					}
				}
			})
		}
	}
}

// In place is the same: AllReduce and AllToAll where the operand was, AllGather and ReduceScatter beside it.
func TestRunRemoteInPlace(t *testing.T) {
	const count = 3000
	for _, n := range []int{2, 3, 5} {
		for _, i := range []int{0, 7} {
			tc := remote[i]
			t.Run(fmt.Sprintf("kind %d, %d ranks", tc.kind, n), func(t *testing.T) {
				atOnce(t, ranksOf(t, n, plane.Options{}), func(c *Links) *call.Fault {
					x := tc.src(c.Rank(), n, 0, count)
					f := made(c, callOf(tc.kind, 0, count, x, x), c.RunRemote)
					same(t, tc.want(c.Rank(), n, 0, count), x, "rank %d", c.Rank())
					return f
				})
			})
		}
	}
}

// What needs memory beside the caller's goes a slice at a time: more than one slice, of which the last is smaller.
func TestSlices(t *testing.T) {
	const n = 2
	whole := tuning.SlicePiece/4 + 1001
	for _, tc := range []struct {
		kind, count int
	}{{1, whole}, {2, whole/n + 7}, {5, whole/n + 7}, {6, whole/n + 7}, {7, whole/n + 7}} {
		c := remote[tc.kind]
		t.Run(fmt.Sprintf("kind %d", c.kind), func(t *testing.T) {
			atOnce(t, ranksOf(t, n, plane.Options{}), func(l *Links) *call.Fault {
				want := c.want(l.Rank(), n, 1, tc.count)
				dst := make([]int32, len(want))
				f := made(l, callOf(c.kind, 1, tc.count, dst, c.src(l.Rank(), n, 1, tc.count)), l.RunRemote)
				same(t, want, dst, "rank %d", l.Rank())
				return f
			})
		})
	}
}

// Gather and Scatter take the caller's memory, where no rank passes blocks on: one slice or several, blocks alike or not.
func TestBlocksInPlace(t *testing.T) {
	const n = 2
	large := tuning.SlicePiece/4/n + 7
	for _, tc := range []struct {
		name    string
		kind    call.Kind
		counts  [n]int
		scratch bool
	}{
		{"gather", call.Gather, [n]int{5000, 5000}, false},
		{"gather, slices", call.Gather, [n]int{large, large}, false},
		{"gatherv", call.GatherV, [n]int{5000, 300}, false},
		{"gatherv, slices", call.GatherV, [n]int{large, 300}, true},
		{"scatter", call.Scatter, [n]int{5000, 5000}, false},
		{"scatter, slices", call.Scatter, [n]int{large, large}, false},
		{"scatterv", call.ScatterV, [n]int{300, 5000}, false},
		{"scatterv, slices", call.ScatterV, [n]int{300, large}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const root = 1
			whole := blocks(n, func(q int) []int32 { return vector(q, 0, tc.counts[q]) })
			atOnce(t, ranksOf(t, n, plane.Options{}), func(c *Links) *call.Fault {
				r := c.Rank()
				want, src := at(r, root, whole), vector(r, 0, tc.counts[r])
				if tc.kind == call.Scatter || tc.kind == call.ScatterV {
					want, src = src, want
				}
				dst := make([]int32, len(want))
				k := callOf(tc.kind, root, tc.counts[0], dst, src)
				if tc.kind == call.GatherV || tc.kind == call.ScatterV {
					k.Count, k.DC = uint64(tc.counts[0]+tc.counts[1]), tc.counts[:]
				}
				f := made(c, k, c.RunRemote)
				same(t, want, dst, "rank %d", r)
				if c.Rank() == root {
					require.Equal(t, tc.scratch, cap(c.work.Scratch(0)) > 0)
				} else {
					require.Zero(t, cap(c.work.Scratch(0)))
				}
				return f
			})
		})
	}
}

// Blocks of different lengths, of which one is empty.
func TestRunRemoteV(t *testing.T) {
	counts := []int{0, 700, 20_000}
	n, total := len(counts), 20_700
	whole := blocks(n, func(q int) []int32 { return vector(q, 0, counts[q]) })
	for _, tc := range []struct {
		kind      call.Kind
		src, want func(r int) []int32
	}{
		{call.AllGatherV, func(r int) []int32 { return vector(r, 0, counts[r]) }, func(int) []int32 { return whole }},
		{call.GatherV, func(r int) []int32 { return vector(r, 0, counts[r]) }, func(r int) []int32 { return at(r, 1, whole) }},
		{call.ScatterV, func(r int) []int32 { return at(r, 1, whole) }, func(r int) []int32 { return vector(r, 0, counts[r]) }},
		{call.ReduceScatterV, func(r int) []int32 { return blocks(n, func(q int) []int32 { return vector(r, q, counts[q]) }) },
			func(r int) []int32 { return sumOf(n, r, counts[r]) }},
	} {
		t.Run(fmt.Sprintf("kind %d", tc.kind), func(t *testing.T) {
			atOnce(t, ranksOf(t, n, plane.Options{}), func(c *Links) *call.Fault {
				want := tc.want(c.Rank())
				dst := make([]int32, len(want))
				k := callOf(tc.kind, 1, total, dst, tc.src(c.Rank()))
				k.DC = counts
				f := made(c, k, c.RunRemote)
				same(t, want, dst, "rank %d", c.Rank())
				return f
			})
		})
	}
	t.Run("AllToAllV", func(t *testing.T) {
		count := func(r, q int) int { return (r + 2*q) * 1500 % 6001 }
		atOnce(t, ranksOf(t, n, plane.Options{}), func(c *Links) *call.Fault {
			sc, dc := make([]int, n), make([]int, n)
			for q := range n {
				sc[q], dc[q] = count(c.Rank(), q), count(q, c.Rank())
			}
			want := blocks(n, func(q int) []int32 { return vector(q, c.Rank(), dc[q]) })
			dst := make([]int32, len(want))
			k := callOf(call.AllToAllV, -1, 0, dst, blocks(n, func(q int) []int32 { return vector(c.Rank(), q, sc[q]) }))
			k.SC, k.DC = sc, dc
			f := made(c, k, c.RemoteAllToAllV)
			same(t, want, dst, "rank %d", c.Rank())
			return f
		})
	})
}

// An average is divided once, after all has been added: on all ranks, or on the root.
func TestRemoteAverage(t *testing.T) {
	const n, count = 3, 1000
	for _, kind := range []call.Kind{call.AllReduce, call.Reduce, call.ReduceScatter} {
		tc := remote[kind-call.AllReduce]
		require.Equal(t, kind, tc.kind)
		atOnce(t, ranksOf(t, n, plane.Options{}), func(c *Links) *call.Fault {
			want := tc.want(c.Rank(), n, 2, count)
			for i := range want {
				want[i] /= n
			}
			dst := make([]int32, len(want))
			k := callOf(kind, 2, count, dst, tc.src(c.Rank(), n, 2, count))
			k.Scale = reduce.Scale(op.Int32)
			f := made(c, k, c.RunRemote)
			same(t, want, dst, "kind %d, rank %d", kind, c.Rank())
			return f
		})
	}
}
