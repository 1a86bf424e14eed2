package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgottenIsGone: a rank that dials a communicator its peer has closed learns
// so at once, and others are not concerned.
func TestForgottenIsGone(t *testing.T) {
	a, b := twoNodes(t)
	b.Forget(7, 1)
	_, err := a.Open(t.Context(), MakeKey(7, 0, 0, 1), 0, b.Addr())
	require.ErrorIs(t, err, ErrGone)
	c, err := a.Open(t.Context(), MakeKey(8, 0, 0, 1), 0, b.Addr())
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
