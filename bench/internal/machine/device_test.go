package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevices(t *testing.T) {
	require.Empty(t, Devices(t.TempDir()))
	root := fake(t, map[string]string{
		"dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": "", "dev/nvidia-uvm": "",
		"dev/dri/renderD128": "", "sys/class/drm/renderD128/device/vendor": "0x8086\n",
		"dev/dri/renderD129": "", "sys/class/drm/renderD129/device/vendor": "0x1002\n",
		"dev/dri/renderD130": "", "sys/class/drm/renderD130/device/vendor": "0x10de\n",
	})
	require.Equal(t, map[string]int{"NVIDIA": 2, "Intel": 1, "AMD": 1}, Devices(root))
}
