package machine

import (
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/internal/engine"
)

// Devices counts the accelerators under root by their vendor's name: by numbered files of their
// driver, else by render nodes.
func Devices(root string) map[string]int {
	found := map[string]int{}
	nodes := renderNodes(root)
	for _, b := range engine.Backends() {
		n := len(nodes[b.Hardware.PCI])
		if files, numbered := strings.CutSuffix(b.Hardware.Node, "0"); numbered {
			all, _ := filepath.Glob(filepath.Join(root, files+"[0-9]*"))
			n = len(all)
		}
		if n > 0 {
			found[b.Hardware.Vendor] = n
		}
	}
	return found
}

// renderNodes are the render nodes under root by the PCI number of their vendor, as sysfs has it.
func renderNodes(root string) map[string][]string {
	nodes := map[string][]string{}
	files, _ := filepath.Glob(filepath.Join(root, "/dev/dri/renderD*"))
	for _, file := range files {
		name := filepath.Base(file)
		if vendor := Word(root, "/sys/class/drm/"+name+"/device/vendor"); vendor != "" {
			nodes[vendor] = append(nodes[vendor], "/dev/dri/"+name)
		}
	}
	return nodes
}
