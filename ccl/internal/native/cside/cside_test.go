//go:build cgo && linux

package cside

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A library that is not the fake one is told from it: every question has -1 for an answer.
func TestOtherLibrary(t *testing.T) {
	_, err := Open("/nonexistent/libnccl.so")
	require.EqualError(t, err, "/nonexistent/libnccl.so cannot be loaded")
	l, err := Open("libc.so.6")
	if err != nil {
		t.Skip(err) // a C library of another name
	}
	for name, ask := range map[string]func() int{
		"Violations": l.Violations, "Threads": l.Threads, "Contexts": l.Contexts, "Registered": l.Registered, "RegisteredBytes": l.RegisteredBytes, "Windows": l.Windows,
		"Asking": l.Asking, "Shrunk": l.Shrunk, "Aborting": l.Aborting,
	} {
		require.Equal(t, -1, ask(), name)
	}
	require.Equal(t, [6]int{-1, -1, -1, -1, -1, -1}, l.Live())
	require.Empty(t, l.Config(0))
}
