package ccltest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

var kept []byte

// What any rank of the process allocates is counted, and what is made once is not.
func TestAllocs(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		x := []float32{1}
		reduce := func() { require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Max)) }
		require.Zero(t, ccltest.Allocs(t, c, 5, reduce))
		n := ccltest.Allocs(t, c, 5, func() {
			if reduce(); c.Rank() == 1 {
				kept = make([]byte, 1<<10)
			}
			reduce()
		})
		if c.Rank() == 0 {
			require.InDelta(t, 1, n, .5)
		} else {
			require.Zero(t, n)
		}
	})
}
