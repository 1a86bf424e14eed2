package ddp_test

import (
	"fmt"
	"math"
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
// the ranks are placed, and in whatever order the gradients become ready.
func TestBits(t *testing.T) {
	lens := []int{1, 1000, 3, 70_001, 5, 333}
	for _, n := range []int{2, 3, 4} {
		for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(n)},
			"hosts": {ccltest.Hosts(2), ccltest.With(ccl.Options{RankOrder: true})}} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, name), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					var gs [][]float32
					var bufs []ccl.Buf
					for _, k := range lens {
						gs = append(gs, make([]float32, k))
						bufs = append(bufs, ccl.BufOf(gs[len(gs)-1]))
					}
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
							differ := 0
							for at := range want {
								if math.Float32bits(want[at]/float32(n)) != math.Float32bits(gs[i][at]) {
									differ++
								}
							}
							require.Zero(t, differ, "gradient %d in step %d", i, step)
						}
					}
					require.NoError(t, r.Close())
				}, opts...)
			})
		}
	}
}

// After the first step all ranks have the buckets of rank 0's order, and keep them; an Order that was given stays.
func TestRebuilt(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		var bufs []ccl.Buf
		for range 6 {
			bufs = append(bufs, ccl.BufOf(make([]float32, 4)))
		}
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
			all := make([]float32, grads*100)
			var bufs []ccl.Buf
			var starts []*float32
			for i := range grads {
				g := all[i*100 : (i+1)*100]
				if !flat {
					g = make([]float32, 100)
				}
				bufs, starts = append(bufs, ccl.BufOf(g)), append(starts, &g[0])
			}
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
					require.True(t, slices.Contains(starts, &s[0]), "the memory is not the gradients'")
					seen += len(s)
				}
				return ccl.Work{}
			}
			r = newReducer(t, c, bufs, &o)
			require.NoError(t, r.All(t.Context()))
			require.Equal(t, len(all), seen)
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
