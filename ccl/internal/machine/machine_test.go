package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The row is one of the table's, and that of the maker.
func TestCPU(t *testing.T) {
	require.Equal(t, tuning.RowOf(CPU.Maker, 0), CPU)
	require.Equal(t, tuning.RowOf(maker(), 0), CPU)
}
