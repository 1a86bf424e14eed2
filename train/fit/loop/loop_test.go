package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDivide(t *testing.T) {
	for n, want := range map[int]int{6: 6, 5: 3, 4: 3, 1: 1} {
		require.Equal(t, want, Divide(12, 2)(n))
	}
}
