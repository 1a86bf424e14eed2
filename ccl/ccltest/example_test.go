package ccltest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

func Example() {
	_ = func(t *testing.T) { // a test
		for _, tc := range []struct {
			name string
			opts []ccltest.Option
		}{
			{"goroutines", nil},
			{"TCP", []ccltest.Option{ccltest.Hosts(4)}},
			{"shared memory", []ccltest.Option{ccltest.Processes(4)}},
			{"mixed", []ccltest.Option{ccltest.Processes(4), ccltest.Hosts(2)}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
					x := []int{c.Rank()}
					require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
					require.Equal(t, []int{0 + 1 + 2 + 3}, x)
				}, tc.opts...)
			})
		}
	}
}
