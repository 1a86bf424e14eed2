//go:build !race

package mat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Under the race detector a sync.Pool forgets one in four of what it is given.
func TestMulAllocatesNothing(t *testing.T) {
	a := make([]float32, 50*50)
	c := make([]float32, 50*50)
	Mul(false, true, 50, 50, 50, a, a, c)
	require.Zero(t, testing.AllocsPerRun(20, func() { Mul(false, true, 50, 50, 50, a, a, c) }))
}
