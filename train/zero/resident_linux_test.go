//go:build linux && !race

package zero_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

var resident = flag.Bool("resident", false, "TestResident has 85.1 M parameters on 4 ranks, which take 5.5 GB at stage 0")

// proportional is what this process holds, in bytes: pages that n processes map count 1/n, as those of ccl.MakeSlice do
// that other ranks have read.
func proportional(t testing.TB) int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "\nPss:")
	require.True(t, ok, "%s", b)
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return n << 10
}

// What a rank holds after three steps is the paper's formula, in float32 with AdamW, and the buffers that Bytes tells.
func TestResident(t *testing.T) {
	ranks, layers, each, noise := 2, 12, 300_000, int64(3<<20) // of Go's heap and stacks
	stages := []int{0, 3}
	switch {
	case *resident:
		ranks, each, stages = 4, 85_100_000/12, []int{0, 1, 2, 3}
	case !testing.Short():
		each, stages = 1_000_000, []int{0, 1, 2, 3}
	}
	for _, stage := range stages {
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			require.NoError(t, ccl.Barrier(ctx, c))
			before := proportional(t)
			var units [][]int
			for range layers {
				units = append(units, []int{each / 3, each - each/3})
			}
			m := newModel[float32, float32](t, c, units, &zero.Options{Stage: stage})
			mean, square := shards(m, layers), shards(m, layers)
			adam := optim.AdamW{LR: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8}
			for step := range 3 {
				forward(t, m, len(units))
				backward(t, m, layers, func(_ int, g [][]float32) {
					for _, x := range g {
						for k := range x {
							x[k] = 1
						}
					}
				})
				require.NoError(t, m.Step(ctx, func(p zero.Piece, w, g []float32) error {
					return optim.Apply(adam, step+1, w, g, mean[p.Unit][p.At:p.At+len(w)], square[p.Unit][p.At:p.At+len(w)])
				}))
			}
			forward(t, m, layers) // what Step has begun to gather
			require.NoError(t, ccl.Barrier(ctx, c))
			grown := []int64{proportional(t) - before}
			runtime.KeepAlive(mean)
			runtime.KeepAlive(square)
			require.NoError(t, ccl.AllReduce(ctx, c, grown, grown, ccl.Sum)) // who touched a page first, and last, is chance
			held := grown[0] / int64(ranks)
			b := m.Bytes()
			want := zero.Need(int64(layers*each), stage, ranks, 4, 4, 8)
			require.InDelta(t, want, b.Params+b.Grads+b.Master+8*int64(layers)*int64(len(m.Shard(0))), float64(want)/1000, "Bytes")
			if c.Rank() == 0 {
				fmt.Printf("stage %d: %.1f MB a rank; the formula %.1f, and buffers of %.1f\n", stage, float64(held)/1e6, float64(want)/1e6, float64(b.Buffers)/1e6)
			}
			require.InDelta(t, want+b.Buffers, held, .05*float64(want+b.Buffers)+float64(noise), "stage %d", stage)
			require.NoError(t, m.Close())
		}, ccltest.Processes(ranks), ccltest.Deadline(300e9))
	}
}
