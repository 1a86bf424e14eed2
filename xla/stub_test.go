//go:build !xla || !cgo || !linux

package xla_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla"
)

// A build without the tag says what is missing, and nothing else can be reached.
func TestStub(t *testing.T) {
	var u *xla.Unavailable
	require.ErrorAs(t, xla.Available(), &u)
	require.ErrorContains(t, u, "build it with -tags xla and CGO_ENABLED=1, with a C compiler, on Linux")
	_, err := xla.Open("/nonexistent/plugin.so")
	require.Equal(t, xla.Available(), err)
}
