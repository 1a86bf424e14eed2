package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla"
)

// What does not fit is told before it runs, with what it takes and what there is.
func TestOutOfRoom(t *testing.T) {
	require.NoError(t, outOfRoom("step", 8<<30, 8<<30))
	require.NoError(t, outOfRoom("step", 8<<30, 0), "the device does not tell")
	err := outOfRoom("step", 8<<30+1, 8<<30)
	require.ErrorIs(t, err, xla.ErrOutOfMemory)
	require.ErrorContains(t, err, "program step takes 8589934593 bytes, 8.00 GiB, and the client of this GPU has 8.00 GiB: give fewer rows")
}
