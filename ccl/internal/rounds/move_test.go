package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// moved has, for each collective that moves blocks, what rank r of n begins with and ends with. A block has count elements.
var moved = []struct {
	name      string
	kind      call.Kind
	root      bool
	src, want func(r, n, root, count int) []int32
}{
	{"AllGather", call.AllGather, false,
		func(r, _, _, count int) []int32 { return vector(r, 0, count) },
		func(_, n, _, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, 0, count) }) }},
	{"Gather", call.Gather, true,
		func(r, _, _, count int) []int32 { return vector(r, 0, count) },
		func(r, n, root, count int) []int32 {
			if r != root {
				return nil
			}
			return blocks(n, func(q int) []int32 { return vector(q, 0, count) })
		}},
	{"Scatter", call.Scatter, true,
		func(r, n, root, count int) []int32 {
			if r != root {
				return nil
			}
			return blocks(n, func(q int) []int32 { return vector(root, q, count) })
		},
		func(r, _, root, count int) []int32 { return vector(root, r, count) }},
	{"AllToAll", call.AllToAll, false,
		func(r, n, _, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(r, q, count) }) },
		func(r, n, _, count int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, r, count) }) }},
}

// blocks are those of n ranks, one behind another.
func blocks(n int, of func(q int) []int32) (all []int32) {
	for q := range n {
		all = append(all, of(q)...)
	}
	return all
}

// Each collective puts each block where it belongs, whatever its size, its root and the way.
func TestMove(t *testing.T) {
	for _, tc := range moved {
		t.Run(tc.name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, all []*Team, count int) {
				n := len(all)
				roots := []int{-1}
				if tc.root {
					roots = []int{0, n - 1}
				}
				for _, root := range roots {
					atOnce(t, all, func(c *Team) *call.Fault {
						want := tc.want(c.me, n, root, count)
						dst := make([]int32, len(want))
						f := run(t, c, callOf(tc.kind, root, count, dst, tc.src(c.me, n, root, count)))
						same(t, want, dst, "rank %d of root %d, %d elements", c.me, root, count)
						return f
					})
				}
			})
		})
	}
}

// A Broadcast is in place: the root's vector becomes everybody's.
func TestBroadcast(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		for root := range all {
			atOnce(t, all, func(c *Team) *call.Fault {
				dst := make([]int32, count)
				if c.me == root {
					dst = vector(root, 0, count)
				}
				f := run(t, c, callOf(call.Broadcast, root, count, dst, nil))
				same(t, vector(root, 0, count), dst, "rank %d of root %d, %d elements", c.me, root, count)
				return f
			})
		}
	})
}

// An AllToAll in place reads no block after it has been overwritten.
func TestAllToAllInPlace(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		atOnce(t, all, func(c *Team) *call.Fault {
			x := moved[3].src(c.me, len(all), -1, count)
			f := run(t, c, callOf(call.AllToAll, -1, count, x, x))
			same(t, moved[3].want(c.me, len(all), -1, count), x, "rank %d, %d elements", c.me, count)
			return f
		})
	})
}

// Blocks of different lengths, some of them empty, go the same ways.
func TestMoveBlocksOfDifferentLengths(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		n := len(all)
		counts := make([]int, n)
		total := 0
		for r := range counts {
			counts[r] = count * r / (n - 1) // rank 0 has none
			total += counts[r]
		}
		whole := blocks(n, func(q int) []int32 { return vector(q, 0, counts[q]) })
		for _, tc := range []struct {
			kind      call.Kind
			root      int
			src, want func(r int) []int32
		}{
			{call.AllGatherV, -1, func(r int) []int32 { return vector(r, 0, counts[r]) }, func(int) []int32 { return whole }},
			{call.GatherV, n - 1, func(r int) []int32 { return vector(r, 0, counts[r]) }, func(r int) []int32 {
				if r != n-1 {
					return nil
				}
				return whole
			}},
			{call.ScatterV, 0, func(r int) []int32 {
				if r != 0 {
					return nil
				}
				return whole
			}, func(r int) []int32 { return vector(r, 0, counts[r]) }},
		} {
			atOnce(t, all, func(c *Team) *call.Fault {
				want := tc.want(c.me)
				dst := make([]int32, len(want))
				k := callOf(tc.kind, tc.root, total, dst, tc.src(c.me))
				k.DC = counts
				f := run(t, c, k)
				same(t, want, dst, "%v: rank %d, %v", tc.kind, c.me, counts)
				return f
			})
		}
	})
}

// other is the place of a rank among those that are not the one that counts.
func TestOther(t *testing.T) {
	for me, want := range [][]int{{-1, 0, 1, 2}, {0, -1, 1, 2}, {0, 1, -1, 2}, {0, 1, 2, -1}} {
		for r, place := range want {
			if r != me {
				assert.Equal(t, place, other(me, r), "rank %d among those that are not %d", r, me)
			}
		}
	}
}
