package proc

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCore(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.Equal(t, -1, Core())
		require.Equal(t, -1, Elsewhere(func(int) bool { return true }))
		return
	}
	require.GreaterOrEqual(t, Core(), 0)
	require.Equal(t, -1, Elsewhere(func(int) bool { return false }))
}
