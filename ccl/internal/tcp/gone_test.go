package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// TestForgottenIsGone: a rank that dials a communicator its peer has closed learns
// so at once, and others are not concerned.
func TestForgottenIsGone(t *testing.T) {
	here := netip.MustParseAddr("127.0.0.1")
	a, err := Listen("job", nil, auth.Plain, here)
	require.NoError(t, err)
	defer a.Close()
	b, err := Listen("job", nil, auth.Plain, here)
	require.NoError(t, err)
	defer b.Close()
	b.Forget(7, 1)
	_, err = a.Open(t.Context(), MakeKey(7, 0, 0, 1), 0, b.Addr())
	require.ErrorIs(t, err, ErrGone)
	c, err := a.Open(t.Context(), MakeKey(8, 0, 0, 1), 0, b.Addr())
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
