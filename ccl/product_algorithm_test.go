package ccl_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// TestOperandStays: with every algorithm a reduction between hosts leaves the operand as it was, and gives the same
// bits as in place, where the operand is not read from elsewhere.
func TestOperandStays(t *testing.T) {
	for _, k := range []op.Kind{op.AllReduce, op.Reduce} {
		for _, name := range algo.Names(k) {
			layouts := []struct{ ranks, hosts int }{{3, 3}, {6, 2}, {8, 8}, {2, 2}, {4, 2}, {5, 5}}
			if testing.Short() { // a power of two of hosts, another number, and several ranks on each
				layouts = layouts[:3]
			}
			for _, l := range layouts {
				t.Run(fmt.Sprintf("%s/%s/%d on %d", k.Flag(), name, l.ranks, l.hosts), func(t *testing.T) {
					t.Setenv("GOCCL_ALGO", fmt.Sprintf("%s=%s", k.Flag(), name))
					ccltest.Run(t, l.ranks, func(t testing.TB, c *ccl.Comm) {
						for _, n := range []int{1, 3, 100, 1025, 20_011, 150_003} {
							if raceDetector && n > 2000 {
								break
							}
							src, inPlace := make([]float32, n), make([]float32, n)
							for i := range src {
								src[i] = 1 / float32(3+i%89+7*c.Rank())
							}
							copy(inPlace, src)
							before, dst := slices.Clone(src), make([]float32, n)
							root := n % c.Size()
							if k == op.AllReduce {
								require.NoError(t, ccl.AllReduce(t.Context(), c, dst, src, ccl.Avg))
								require.NoError(t, ccl.AllReduce(t.Context(), c, inPlace, inPlace, ccl.Avg))
							} else {
								require.NoError(t, ccl.Reduce(t.Context(), c, dst, src, ccl.Sum, root))
								require.NoError(t, ccl.Reduce(t.Context(), c, inPlace, inPlace, ccl.Sum, root))
							}
							require.True(t, slices.Equal(before, src), "%d elements: the operand has changed", n)
							if k == op.AllReduce || c.Rank() == root {
								require.True(t, slices.Equal(inPlace, dst), "%d elements: not the bits of the call in place", n)
							}
						}
					}, ccltest.Hosts(l.hosts))
				})
			}
		}
	}
}
