package proc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers do not repeat, and have all bits; siblings.c of capi has processes that math/rand gives the same.
func TestNumber(t *testing.T) {
	seen, some, all := map[uint64]bool{}, uint64(0), ^uint64(0)
	for range 1000 {
		n := Number()
		require.False(t, seen[n])
		seen[n], some, all = true, some|n, all&n
	}
	require.Equal(t, ^uint64(0), some)
	require.Zero(t, all)
}
