package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// The average of float16 gradients is a number where each of them is: NCCL scales before it sums, and PyTorch's hooks
// divide first.
func TestAverageOfLargeGradients(t *testing.T) {
	for i, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		name := []string{"threads", "processes", "hosts"}[i]
		for _, n := range []int{2, 4} {
			for _, k := range []int{4, 100_000} {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					g := make([]ccl.Float16, k)
					for i := range g {
						g[i] = ccl.ToFloat16(40000)
					}
					r := newReducer(t, c, []ccl.Buf{ccl.BufOf(g)}, nil)
					defer r.Close()
					require.NoError(t, r.All(t.Context()))
					require.InEpsilon(t, 40000, g[k-1].Float32(), 1e-3, "%s, %d ranks, %d elements", name, n, k)
				}, opts...)
			}
		}
	}
}
