//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestPeerAccess(t *testing.T) {
	both(t, func(t *testing.T, rt *gpu.Runtime, d gpu.Device) {
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

func TestPeersOfTwoRuntimes(t *testing.T) {
	gputest.Use(t)
	c, err := gpu.CUDA.Device(0)
	if err != nil {
		t.Skip("hardware: " + err.Error())
	}
	h, err := gpu.HIP.Device(0)
	if err != nil {
		t.Skip("hardware: " + err.Error())
	}
	require.EqualError(t, c.EnableAccess(h), "cuda: cuda:0 and rocm:0 belong to different runtimes")
	s, x := stream(t, c), alloc[int32](t, h, 1)
	require.EqualError(t, x.SetOn(s, 0), "cuda: stream is of cuda:0, but 4 bytes of device memory is of rocm:0")
}
