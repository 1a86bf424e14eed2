//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu"
)

// TestOnSync: whoever asks is told what had been issued when the question began, and not once it has returned nil.
func TestOnSync(t *testing.T) {
	both(t, func(t *testing.T, rt *gpu.Runtime, d gpu.Device) {
		s := stream(t, d)
		asked, passed, over := 0, 0, false
		s.OnSync(func() func() {
			asked++
			if over {
				return nil
			}
			return func() { passed++ }
		})
		require.NoError(t, s.Synchronize())
		done, err := s.Query()
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, [2]int{2, 2}, [2]int{asked, passed})
		over = true
		require.NoError(t, s.Synchronize())
		require.NoError(t, s.Synchronize())
		require.Equal(t, [2]int{3, 2}, [2]int{asked, passed})
	})
}
