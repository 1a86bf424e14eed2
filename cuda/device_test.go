//go:build linux && cgo && nccl

package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestCUDA(t *testing.T) {
	b := ccl.BufOfMemory(platform.Test(t))
	require.Equal(t, 3, b.Len())
	require.Equal(t, ccl.TypeFloat32, b.Type())
}
