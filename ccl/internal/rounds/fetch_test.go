package rounds

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
)

// What a rank fetches it takes from the owner's memory, as that is when the owner has entered the call, and the owner stays
// until it has been fetched: nothing is staged.
func TestFetch(t *testing.T) {
	const n, count = 3, 30_000
	whole := func(r int) []int32 { return blocks(n, func(q int) []int32 { return vector(r, q, count) }) }
	for _, tc := range []struct {
		name      string
		kind      call.Kind
		run       func(c *Team, k *call.Call) *call.Fault
		src, want func(r int) []int32
		w         []way
	}{
		{"a vector from the root", call.Broadcast, func(c *Team, k *call.Call) *call.Fault { return c.fetchFromRoot(t.Context(), k, 1, k.Dst, 0) },
			nil, func(int) []int32 { return vector(1, 0, count) }, []way{byRead, byDirect}},
		{"blocks from the root", call.Scatter, func(c *Team, k *call.Call) *call.Fault { return c.scatterByRead(t.Context(), k, 1) },
			func(r int) []int32 { return whole(1)[:min(len(whole(1)), len(whole(1))*(r%2))] }, func(r int) []int32 { return vector(1, r, count) }, []way{byRead, byDirect}},
		{"blocks of all at all", call.AllGather, func(c *Team, k *call.Call) *call.Fault { return c.collectByRead(t.Context(), k, -1) },
			func(r int) []int32 { return vector(r, 0, count) }, func(int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, 0, count) }) }, []way{byRead, byDirect}},
		{"blocks of all at the root", call.Gather, func(c *Team, k *call.Call) *call.Fault { return c.collectByRead(t.Context(), k, 1) },
			func(r int) []int32 { return vector(r, 0, count) }, func(r int) []int32 {
				if r != 1 {
					return nil
				}
				return blocks(n, func(q int) []int32 { return vector(q, 0, count) })
			}, []way{byRead, byDirect}},
		{"blocks of all where the root wants them", call.Gather, func(c *Team, k *call.Call) *call.Fault {
			written, f := c.gatherByWrite(t.Context(), k, 1)
			if !written && f == nil {
				t.Error("not written")
			}
			return f
		}, func(r int) []int32 { return vector(r, 0, count) }, func(r int) []int32 {
			if r != 1 {
				return nil
			}
			return blocks(n, func(q int) []int32 { return vector(q, 0, count) })
		}, []way{byDirect}},
		{"a block of each", call.AllToAll, func(c *Team, k *call.Call) *call.Fault {
			if _, _, f := c.offers.exchange(t.Context(), k, k.Src, k.Dst, 0); f != nil {
				return f
			}
			return c.allToAllByRead(t.Context(), k)
		}, whole, func(r int) []int32 { return blocks(n, func(q int) []int32 { return vector(q, r, count) }) }, []way{byRead, byDirect}},
		{"the sum of each block", call.ReduceScatter, func(c *Team, k *call.Call) *call.Fault { return c.reduceScatterByRead(t.Context(), k) },
			whole, func(r int) []int32 { return sumOf(n, r, count) }, []way{byRead, byDirect}},
		{"the sum at the root", call.Reduce, func(c *Team, k *call.Call) *call.Fault { return c.reduceAtRoot(t.Context(), k, 1) },
			func(r int) []int32 { return vector(r, 0, count) }, func(r int) []int32 {
				if r != 1 {
					return nil
				}
				return sumOf(n, 0, count)
			}, []way{byRead, byDirect}},
	} {
		for _, w := range tc.w {
			t.Run(tc.name, func(t *testing.T) {
				all := ranksOf(t, n, w)
				atOnce(t, all, func(c *Team) *call.Fault {
					var src []int32
					if tc.src != nil {
						src = tc.src(c.me)
					}
					want := tc.want(c.me)
					dst := make([]int32, len(want))
					if tc.kind == call.Broadcast && c.me == 1 {
						copy(dst, want)
					}
					k := callOf(tc.kind, 1, count, dst, src)
					enter(c, k)
					defer c.rank.Wake()
					if f := c.offers.acquaint(t.Context(), k); f != nil {
						return f
					}
					f := tc.run(c, k)
					clear(src) // nobody reads it any more
					if c.me == 1 && tc.kind == call.Broadcast {
						return f
					}
					same(t, want, dst, "rank %d", c.me)
					return f
				})
				for _, c := range all {
					require.Nil(t, c.staging.lines, "something was staged")
				}
			})
		}
	}
}
