//go:build linux && cgo && rccl

package rocm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestROCm(t *testing.T) {
	b := ccl.BufOfMemory(platform.Test(t))
	require.Equal(t, 3, b.Len())
	require.Equal(t, ccl.TypeFloat32, b.Type())
}
