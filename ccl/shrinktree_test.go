package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A Comm of more than 64 ranks agrees through a tree: those that are left get one Comm, though ranks are lost through which others
// speak, the lead among them, and some have closed the Comm.
func TestShrinkThroughTree(t *testing.T) {
	const n, hosts = 72, 24
	lost := map[int]bool{0: true, 3: true, 4: true} // the lead; the first two ranks of host 1, through which others speak
	opts := []ccltest.Option{ccltest.Hosts(hosts)}
	for r := range lost {
		opts = append(opts, ccltest.Kill(r, 2))
	}
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, ccl.Barrier(t.Context(), c))
		if c.Rank() == 7 { // the first of its host but one
			require.NoError(t, c.Close())
			return
		}
		require.Error(t, untilFailed(t.Context(), c))
		next, err := c.Shrink(t.Context())
		require.NoError(t, err)
		defer next.Close()
		var want []int
		for r := range n {
			if !lost[r] && r != 7 {
				want = append(want, r)
			}
		}
		require.Equal(t, want, members(t, next, c.Rank()))
	}, opts...)
}
