package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// y = 1 (1 2 3 4) + 2 (2 3 4 5) + 3 (3 4 5 6).
func TestSums(t *testing.T) {
	var out bytes.Buffer
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		to := io.Writer(io.Discard)
		if c.Rank() == 2 {
			to = &out
		}
		require.NoError(t, sums(t.Context(), c, to))
	})
	require.Equal(t, `Send and Recv:   [14 20 26 32]
AllReduce:       [14 20 26 32]
Enter and Leave: [14 20 26 32]
the same: true
`, out.String())
}
