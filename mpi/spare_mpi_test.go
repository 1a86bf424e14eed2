//go:build mpi && cgo

package mpi

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "1")
	spare()
	require.Equal(t, 1, runtime.GOMAXPROCS(0), "what the user has set")
	t.Setenv("GOMAXPROCS", "")
	spare()
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	runtime.GOMAXPROCS(3)
	spare()
	require.Equal(t, 3, runtime.GOMAXPROCS(0))
}
