package proc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The process that has not been forked goes on.
func TestNotForked(t *testing.T) {
	require.False(t, Forked())
	HaltFork()
	Yield()
}
