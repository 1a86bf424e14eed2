//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestDevice(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		name, err := d.Name()
		require.NoError(t, err)
		require.NotEmpty(t, name)
		address, err := d.PCI()
		require.NoError(t, err)
		require.Regexp(t, `^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$`, address)
		free, total, err := d.Memory()
		require.NoError(t, err)
		require.LessOrEqual(t, free, total)
		require.Positive(t, total)
		node, err := d.NUMA()
		require.NoError(t, err)
		require.GreaterOrEqual(t, node, -1)
		require.NoError(t, d.Synchronize())
		driver, runtime, err := rt.Versions()
		require.NoError(t, err)
		require.Positive(t, driver)
		require.Positive(t, runtime)
		require.NotEmpty(t, rt.Path())
		require.Equal(t, !gputest.Real(), rt.Fake())
		_, pkg := prefix(rt)
		require.Equal(t, pkg+":0", d.String())
		require.Equal(t, pkg, d.Platform())
		require.Zero(t, d.Index())
	})
}

func TestDevices(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		all, err := rt.Devices()
		require.NoError(t, err)
		n, err := rt.Count()
		require.NoError(t, err)
		require.Len(t, all, n)
		require.Equal(t, d, all[0])
		seen := map[string]bool{}
		for i, d := range all {
			require.Equal(t, i, d.Index())
			address, err := d.PCI()
			require.NoError(t, err)
			require.False(t, seen[address], address)
			seen[address] = true
		}
	})
}

func TestNoSuchDevice(t *testing.T) {
	gputest.Fake(t, "the texts are of the fake's 8 devices")
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		for n, want := range map[int]string{
			8:  ": there is no device 8: 8 devices are visible, 0 to 7",
			-1: ": there is no device -1: 8 devices are visible, 0 to 7",
		} {
			_, err := rt.Device(n)
			require.EqualError(t, err, pkg+want)
		}
	})
}

func TestZeroDevice(t *testing.T) {
	const want = "the zero Device is not a device: get one from At, Local or Devices"
	var d gputest.Device
	_, err := d.Name()
	require.EqualError(t, err, want)
	_, err = d.NewStream()
	require.EqualError(t, err, want)
	_, err = gpu.Alloc[float32](d, 1)
	require.EqualError(t, err, want)
	_, err = d.CanAccess(d)
	require.EqualError(t, err, want)
	require.EqualError(t, d.Synchronize(), want)
	require.EqualError(t, d.Owns(0), want)
}
