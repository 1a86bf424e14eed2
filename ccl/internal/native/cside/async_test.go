//go:build cgo && linux

package cside

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// A communicator that does not block says that its start is under way, and then that it is made. Its calls are those of TestKnobs
// of package native.
func TestAsync(t *testing.T) {
	l, err := Open(fake.Library(t))
	require.NoError(t, err)
	a, said := l.Async()
	require.Equal(t, InProgress, said)
	for a.State() == InProgress {
	}
	require.Zero(t, a.State())
	require.Equal(t, 4, a.Call(0, 0), "a call without memory is refused")
	require.Zero(t, a.Abort())
}
