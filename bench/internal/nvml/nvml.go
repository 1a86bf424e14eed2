// Package nvml tells how the NVIDIA GPUs of this host are connected: NVLink, PCIe, NUMA. It is
// compiled in by the tag nvml, with cgo, and is used by nothing but bench: the link flags of the
// binding it needs have the linker ignore undefined symbols of the whole program.
package nvml

import (
	"fmt"
	"strings"
)

// Topology is the GPUs of a host, and what lies between each two.
type Topology struct {
	Driver string   `json:"driver"`
	GPUs   []GPU    `json:"gpus"`
	Links  [][]Link `json:"links"` // [i][j]: between GPUs i and j
}

// GPU is one of a host's GPUs, visible to this process or not.
type GPU struct {
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	PCI    string `json:"pci"` // "0000:1b:00.0"
	Memory uint64 `json:"memory"`
	NUMA   int    `json:"numa"` // -1 if the system does not tell
}

// Link is what lies between two GPUs, in the words of nvidia-smi topo: "NV18" for 18 NVLinks, else the farthest
// that traffic has to go, PIX (one PCIe switch), PXB (several), PHB (a host bridge), NODE (several of one NUMA node),
// SYS (between NUMA nodes); X of a GPU and itself, "?" where the driver does not tell.
type Link string

// String is a table, as nvidia-smi topo -m has it.
func (t *Topology) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s", "")
	for i := range t.GPUs {
		fmt.Fprintf(&b, "%-6s", fmt.Sprintf("GPU%d", i))
	}
	b.WriteString("NUMA  PCI           GPU\n")
	for i, g := range t.GPUs {
		fmt.Fprintf(&b, "%-6s", fmt.Sprintf("GPU%d", i))
		for _, l := range t.Links[i] {
			fmt.Fprintf(&b, "%-6s", l)
		}
		numa := "-"
		if g.NUMA >= 0 {
			numa = fmt.Sprint(g.NUMA)
		}
		fmt.Fprintf(&b, "%-6s%-14s%s\n", numa, g.PCI, g.Name)
	}
	return b.String()
}
