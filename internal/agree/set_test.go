package agree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSet(t *testing.T) {
	s := setFor(130)
	for _, r := range []int{0, 63, 64, 129} {
		require.False(t, s.has(r))
		s.add(r)
		require.True(t, s.has(r))
		require.False(t, s.has(r^1))
	}
}
