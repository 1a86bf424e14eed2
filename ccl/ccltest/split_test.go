package ccltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// What Split returns is closed when its rank's test has ended, and a Split that fails ends that.
func TestSplit(t *testing.T) {
	parts := make([]*ccl.Comm, 3)
	Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		me := c.Rank()
		parts[me] = Split(t, c, []int{0, 0, -1}[me], -me)
		if me < 2 {
			require.Equal(t, []int{2, 1 - me}, []int{parts[me].Size(), parts[me].Rank()})
		}
	})
	require.ErrorIs(t, ccl.Barrier(t.Context(), parts[0]), ccl.ErrClosed)
	require.ErrorIs(t, ccl.Barrier(t.Context(), parts[1]), ccl.ErrClosed)
	require.Nil(t, parts[2])
	r := record(t, func(t testing.TB) {
		Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			require.NoError(t, c.Close())
			Split(t, c, 0, 0)
		})
	})
	require.True(t, r.fails)
	require.Contains(t, r.errors[0], "Split: the Comm is closed")
}
