package machine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Devices counts the accelerators under root by their vendor's name.
func Devices(root string) map[string]int {
	found := map[string]int{}
	nvidia, _ := filepath.Glob(filepath.Join(root, "/dev/nvidia*"))
	for _, f := range nvidia {
		if nvidiaDevice.MatchString(f) {
			found["NVIDIA"]++
		}
	}
	nodes, _ := filepath.Glob(filepath.Join(root, "/dev/dri/renderD*"))
	for _, node := range nodes {
		b, _ := os.ReadFile(filepath.Join(root, "/sys/class/drm", filepath.Base(node), "device/vendor"))
		switch strings.TrimSpace(string(b)) {
		case intel:
			found["Intel"]++
		case amd:
			found["AMD"]++
		}
	}
	return found
}

// amd is AMD's PCI vendor number, as sysfs has it.
const amd = "0x1002"

var nvidiaDevice = regexp.MustCompile(`/nvidia\d+$`)
