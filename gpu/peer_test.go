//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestPeerAccess(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		all, err := rt.Devices()
		require.NoError(t, err)
		if len(all) < 2 {
			t.Skip("hardware: one device")
		}
		can, err := d.CanAccess(all[1])
		require.NoError(t, err)
		if !can {
			t.Skip("hardware: devices 0 and 1 cannot access each other")
		}
		require.NoError(t, d.DisableAccess(all[1]), "not enabled yet")
		require.NoError(t, d.EnableAccess(all[1]))
		require.NoError(t, d.EnableAccess(all[1]), "twice")
		require.NoError(t, d.DisableAccess(all[1]))
		require.Error(t, d.EnableAccess(d), "itself")
	})
}
