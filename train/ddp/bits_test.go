package ddp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// gradient is what rank r has computed of gradient i in a step: numbers whose sums are rounded.
func gradient(r, i, step, n int) []float32 {
	x := rand.New(rand.NewPCG(uint64(r), uint64(1000*step+i)))
	g := make([]float32, n)
	for k := range g {
		g[k] = float32(x.NormFloat64())
	}
	return g
}

// The averages have the bits of one rank that adds the ranks' gradients in rank order and divides by their number, however
// the ranks are placed, in one piece of memory or in pieces, and in whatever order the gradients become ready.
func TestBits(t *testing.T) {
	lens := []int{1, 1000, 3, 70_001, 5, 333, 4000, 17}
	for _, n := range []int{2, 3, 4} {
		for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(n)},
			"hosts": {ccltest.Hosts(2), ccltest.With(ccl.Options{RankOrder: true})}} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, name), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					for _, side := range []bool{false, true} {
						gs, bufs := gradients(side, lens...)
						r := newReducer(t, c, bufs, &ddp.Options{FirstBytes: 1 << 10, Bytes: 1 << 12})
						for step := range 3 {
							for i, k := range lens {
								copy(gs[i], gradient(c.Rank(), i, step, k))
							}
							for _, i := range rand.New(rand.NewPCG(uint64(c.Rank()), uint64(step))).Perm(len(gs)) {
								require.NoError(t, r.Ready(i))
							}
							require.NoError(t, r.Wait(t.Context()))
							for i, k := range lens {
								want := gradient(0, i, step, k)
								for other := 1; other < n; other++ {
									for at, x := range gradient(other, i, step, k) {
										want[at] += x
									}
								}
								for at := range want {
									want[at] /= float32(n)
								}
								require.Equal(t, ddp.Hash(want), ddp.Hash(gs[i]), "gradient %d in step %d", i, step)
							}
						}
						require.NoError(t, r.Close())
					}
				}, opts...)
			})
		}
	}
}

// After the first step all ranks have the buckets of rank 0's order, and keep them; an Order that was given stays.
func TestRebuilt(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		_, bufs := gradients(false, 4, 4, 4, 4, 4, 4)
		r := newReducer(t, c, bufs, &ddp.Options{FirstBytes: 16, Bytes: 32})
		require.Equal(t, [][]int{{5}, {4, 3}, {2, 1}, {0}}, r.Buckets())
		orders := [][]int{{2, 0, 4, 1, 5, 3}, {5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5}}
		for step := range 3 {
			for _, i := range orders[(c.Rank()+step)%3] {
				require.NoError(t, r.Ready(i))
			}
			require.NoError(t, r.Wait(t.Context()))
			require.Equal(t, [][]int{{2}, {0, 4}, {1, 5}, {3}}, r.Buckets(), "step %d", step)
		}
		require.NoError(t, r.Close())

		r = newReducer(t, c, bufs, &ddp.Options{FirstBytes: 16, Bytes: 32, Order: []int{0, 1, 2, 3, 4, 5}})
		for range 2 {
			require.NoError(t, r.All(t.Context()))
			require.Equal(t, [][]int{{0}, {1, 2}, {3, 4}, {5}}, r.Buckets())
		}
		require.NoError(t, r.Close())
	})
}

// A bucket is calls on the gradients where they lie, in one group: one call where they lie side by side.
func TestNothingIsCopied(t *testing.T) {
	const grads, steps, ranks = 8, 2, 2
	for _, flat := range []bool{true, false} {
		var calls atomic.Int64
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			gs, bufs := gradients(flat, slices.Repeat([]int{100}, grads)...)
			o := ddp.Options{FirstBytes: 400, Bytes: 1200, Order: []int{7, 6, 5, 4, 3, 2, 1, 0}}
			r := newReducer(t, c, bufs, &o)
			require.Equal(t, [][]int{{7}, {6, 5, 4}, {3, 2, 1}, {0}}, r.Buckets())
			for range steps {
				require.NoError(t, r.All(t.Context()))
			}
			require.NoError(t, r.Close())

			seen := 0
			o.Hook = func(b *ddp.Bucket) ccl.Work {
				for _, x := range b.Bufs {
					s, ok := ccl.SliceOf[float32](x)
					require.True(t, ok)
					require.True(t, slices.ContainsFunc(gs, func(g []float32) bool { return &g[0] == &s[0] }), "the memory is not the gradients'")
					seen += len(s)
				}
				return ccl.Work{}
			}
			r = newReducer(t, c, bufs, &o)
			require.NoError(t, r.All(t.Context()))
			require.Equal(t, 100*grads, seen)
			require.NoError(t, r.Close())
		}, ccltest.With(ccl.Options{OnCall: func(o ccl.Observation) {
			if o.Call.Kind == ccl.KindAllReduce && o.Call.Type == ccl.TypeFloat32 {
				calls.Add(1)
			}
		}}))
		want := 4 // buckets
		if !flat {
			want = grads
		}
		require.EqualValues(t, want*steps*ranks, calls.Load(), "flat: %v", flat)
	}
}
