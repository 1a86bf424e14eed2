//go:build nvml && linux && cgo

package nvml

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Read asks the driver.
func Read() (*Topology, error) { return read(nvml.New()) }

// read asks lib. Nothing of lib may be called after an Init that has failed, not even for the error's text: the
// functions are undefined then, and the loader ends the process.
func read(lib nvml.Interface) (*Topology, error) {
	switch r := lib.Init(); r {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("nvml: no libnvidia-ml.so.1 here: it comes with NVIDIA's driver")
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("nvml: NVIDIA's driver is not loaded on this machine")
	default:
		return nil, fmt.Errorf("nvml: nvmlInit failed with code %d", r)
	}
	defer lib.Shutdown()
	n, r := lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: nvmlDeviceGetCount: %s", lib.ErrorString(r))
	}
	t := &Topology{}
	t.Driver, _ = lib.SystemGetDriverVersion()
	devices := make([]nvml.Device, n)
	for i := range devices {
		if devices[i], r = lib.DeviceGetHandleByIndex(i); r != nvml.SUCCESS {
			return nil, fmt.Errorf("nvml: GPU %d: nvmlDeviceGetHandleByIndex: %s", i, lib.ErrorString(r))
		}
		g, r := gpu(devices[i])
		if r != nvml.SUCCESS {
			return nil, fmt.Errorf("nvml: GPU %d: nvmlDeviceGetPciInfo: %s", i, lib.ErrorString(r))
		}
		t.GPUs = append(t.GPUs, g)
	}
	links := make([]nvlinks, n)
	for i, d := range devices {
		links[i] = nvlinksOf(d)
	}
	for i := range devices {
		row := make([]Link, n)
		for j := range devices {
			row[j] = between(devices, links, t.GPUs, i, j)
		}
		t.Links = append(t.Links, row)
	}
	return t, nil
}

// gpu describes d. The address is what all else hangs on; the rest may be unknown.
func gpu(d nvml.Device) (GPU, nvml.Return) {
	pci, r := d.GetPciInfo()
	if r != nvml.SUCCESS {
		return GPU{}, r
	}
	g := GPU{PCI: address(pci), NUMA: -1}
	g.Name, _ = d.GetName()
	g.UUID, _ = d.GetUUID()
	if m, r := d.GetMemoryInfo(); r == nvml.SUCCESS {
		g.Memory = m.Total
	}
	if text, err := os.ReadFile("/sys/bus/pci/devices/" + g.PCI + "/numa_node"); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			g.NUMA = node
		}
	}
	return g, nvml.SUCCESS
}

// address is as Linux writes it. NVML's own text has eight digits of domain.
func address(p nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
}

// nvlinks is where the active links of a GPU go: how many to each GPU, by its address, and how many to switches, behind
// which all GPUs with links to switches are.
type nvlinks struct {
	to       map[string]int
	switches int
}

func nvlinksOf(d nvml.Device) nvlinks {
	l := nvlinks{to: map[string]int{}}
	for i := range nvml.NVLINK_MAX_LINKS {
		if state, r := d.GetNvLinkState(i); r != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		if kind, r := d.GetNvLinkRemoteDeviceType(i); r == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH {
			l.switches++
		} else if remote, r := d.GetNvLinkRemotePciInfo(i); r == nvml.SUCCESS {
			l.to[address(remote)]++
		}
	}
	return l
}

func between(devices []nvml.Device, links []nvlinks, gpus []GPU, i, j int) Link {
	if i == j {
		return "X"
	}
	if n := links[i].to[gpus[j].PCI] + min(links[i].switches, links[j].switches); n > 0 {
		return Link(fmt.Sprintf("NV%d", n))
	}
	level, r := devices[i].GetTopologyCommonAncestor(devices[j])
	if r != nvml.SUCCESS {
		return "?"
	}
	return cmp.Or(common[level], "?")
}

// common is what lies between two GPUs by their nearest common ancestor.
var common = map[nvml.GpuTopologyLevel]Link{
	nvml.TOPOLOGY_INTERNAL: "PIX", nvml.TOPOLOGY_SINGLE: "PIX", // two GPUs of one board, one switch
	nvml.TOPOLOGY_MULTIPLE: "PXB", nvml.TOPOLOGY_HOSTBRIDGE: "PHB", nvml.TOPOLOGY_NODE: "NODE",
	nvml.TOPOLOGY_SYSTEM: "SYS",
}
