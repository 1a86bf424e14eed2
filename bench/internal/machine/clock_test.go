package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClockDoesNotGoBack(t *testing.T) {
	before, ok := Clock()
	after, again := Clock()
	require.Equal(t, ok, again)
	require.GreaterOrEqual(t, after, before)
}
