//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// Pinned memory that a copy under way still writes to is freed after it, as the libraries do.
func TestFreeHostWaitsForCopies(t *testing.T) {
	t.Setenv("FAKE_DELAY_US", "50000")
	both(t, func(t *testing.T, _ *gputest.Runtime, d gputest.Device) {
		s := stream(t, d)
		x, err := gpu.Alloc[int32](d, 100)
		require.NoError(t, err)
		defer x.Free()
		h, err := gpu.AllocHost[int32](d, 100)
		require.NoError(t, err)
		require.NoError(t, x.GetOn(s, h))
		require.NoError(t, h.Free())
		idle, err := s.Query()
		require.NoError(t, err)
		require.True(t, idle)
	})
}
