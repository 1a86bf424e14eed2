//go:build oneccl && cgo && linux

package oneccl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The row that is registered has the engine.
func TestBackend(t *testing.T) {
	b := Backend()
	require.Equal(t, "oneccl", b.Name)
	require.True(t, b.Sole)
	require.NotNil(t, b.Open)
	t.Setenv("CCL_PLUGIN", "libccl_legacy_cpu.so")
	n, err := b.Devices.Count()
	require.NoError(t, err)
	require.Zero(t, n, "oneCCL is told to run on its CPU plugin")
	device, err := b.Choose(-1, 0, 1)
	require.NoError(t, err)
	require.Equal(t, -1, device)
	_, err = b.Choose(0, 0, 1)
	require.EqualError(t, err, "oneccl: device 0 was asked for, but there is none: CCL_PLUGIN is libccl_legacy_cpu.so")
}

// TestPluginByName has the plugin's file name, and not its folder's, say that it is for CPUs.
func TestPluginByName(t *testing.T) {
	t.Setenv("GOCCL_XPU_LIB", "")
	for name, want := range map[string]bool{
		"/opt/x/libccl_legacy_cpu.so": true, "ONECCL_LEGACY_CPU": true,
		"/home/cpunodes/libccl_legacy.so": false, "ONECCL_LEGACY": false,
	} {
		t.Setenv("CCL_PLUGIN", name)
		why, err := noDevice()
		require.NoError(t, err)
		require.Equal(t, want, why != nil && why.Error() == "CCL_PLUGIN is "+name, name)
	}
}
