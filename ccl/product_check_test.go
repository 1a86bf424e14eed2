package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Results do not depend on how far mismatches are looked for.
func TestProductChecks(t *testing.T) {
	for _, check := range []ccl.Check{ccl.CheckStrict, ccl.CheckOff} {
		t.Run(check.String(), func(t *testing.T) {
			for _, n := range []int{2, 5} {
				inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
					for e, s := range cases(n, []int{0, 5, 3000}) {
						if mix(s.number)%64 != 0 {
							continue
						}
						require.NoError(t, e.play(t.Context(), c, s))
					}
				}, ccltest.With(ccl.Options{Check: check}))
			}
		})
	}
}

// Several Comms of the same ranks, made by Split, do not disturb each other.
func TestProductSplit(t *testing.T) {
	inWorlds(t, 6, func(t testing.TB, c *ccl.Comm) {
		sub, err := c.Split(t.Context(), c.Rank()%2, -c.Rank())
		require.NoError(t, err)
		defer sub.Close()
		same, err := c.Split(t.Context(), 0, c.Rank())
		require.NoError(t, err)
		defer same.Close()
		for e, s := range cases(3, []int{0, 5, 900}) {
			if mix(s.number)%64 != 0 {
				continue
			}
			for _, c := range []*ccl.Comm{c, sub, same} {
				s := s
				s.uneven(c.Size())
				require.NoError(t, e.play(t.Context(), c, s))
			}
		}
	})
}
