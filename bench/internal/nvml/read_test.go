//go:build nvml && linux && cgo

package nvml

import (
	"fmt"
	"os"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/require"
)

// device is a GPU at bus n+1; link i of it goes to the GPU on bus links[i], or to a switch where that is -1, and ancestor
// is its distance to GPU m.
func device(n int, links []int, ancestor func(m int) nvml.GpuTopologyLevel) *mock.Device {
	state := func(i int) (nvml.EnableState, nvml.Return) {
		if i >= len(links) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		if links[i] == 0 {
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	return &mock.Device{
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: uint32(n + 1)}, nvml.SUCCESS },
		GetNameFunc:    func() (string, nvml.Return) { return "NVIDIA Test", nvml.SUCCESS },
		GetUUIDFunc:    func() (string, nvml.Return) { return fmt.Sprintf("GPU-%d", n), nvml.SUCCESS },
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: 1 << 30}, nvml.SUCCESS
		},
		GetNvLinkStateFunc: state,
		GetNvLinkRemoteDeviceTypeFunc: func(i int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			if links[i] < 0 {
				return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
			}
			return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
		},
		GetNvLinkRemotePciInfoFunc: func(i int) (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{Bus: uint32(links[i])}, nvml.SUCCESS
		},
		GetTopologyCommonAncestorFunc: func(d nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
			pci, _ := d.GetPciInfo()
			return ancestor(int(pci.Bus) - 1), nvml.SUCCESS
		},
	}
}

func library(devices ...*mock.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "580.1", nvml.SUCCESS },
		DeviceGetCountFunc:         func() (int, nvml.Return) { return len(devices), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) { return devices[i], nvml.SUCCESS },
		ErrorStringFunc:            func(r nvml.Return) string { return fmt.Sprintf("code %d", r) },
	}
}

func TestRead(t *testing.T) {
	levels := []nvml.GpuTopologyLevel{nvml.TOPOLOGY_SINGLE, nvml.TOPOLOGY_MULTIPLE, nvml.TOPOLOGY_HOSTBRIDGE, nvml.TOPOLOGY_NODE, nvml.TOPOLOGY_SYSTEM, 33}
	for _, tc := range []struct {
		name  string
		gpus  []*mock.Device
		links [][]Link
	}{
		{"none", nil, nil},
		{"switched", []*mock.Device{
			device(0, []int{-1, -1, -1}, nil), device(1, []int{-1, -1, -1}, nil), device(2, []int{-1, 0, -1}, nil),
		}, [][]Link{{"X", "NV3", "NV2"}, {"NV3", "X", "NV2"}, {"NV2", "NV2", "X"}}},
		{"direct", []*mock.Device{
			device(0, []int{2, 2, 0, 2}, nil), device(1, []int{1, 1, 1}, nil),
		}, [][]Link{{"X", "NV3"}, {"NV3", "X"}}},
		{"PCIe", []*mock.Device{
			device(0, nil, func(m int) nvml.GpuTopologyLevel { return levels[m-1] }),
			device(1, nil, func(int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_SINGLE }),
			device(2, nil, func(int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_MULTIPLE }),
			device(3, nil, func(int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_HOSTBRIDGE }),
			device(4, nil, func(int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_NODE }),
			device(5, nil, func(int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_SYSTEM }),
			device(6, nil, func(int) nvml.GpuTopologyLevel { return 33 }),
		}, [][]Link{
			{"X", "PIX", "PXB", "PHB", "NODE", "SYS", "?"},
			{"PIX", "X", "PIX", "PIX", "PIX", "PIX", "PIX"},
			{"PXB", "PXB", "X", "PXB", "PXB", "PXB", "PXB"},
			{"PHB", "PHB", "PHB", "X", "PHB", "PHB", "PHB"},
			{"NODE", "NODE", "NODE", "NODE", "X", "NODE", "NODE"},
			{"SYS", "SYS", "SYS", "SYS", "SYS", "X", "SYS"},
			{"?", "?", "?", "?", "?", "?", "X"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lib := library(tc.gpus...)
			top, err := read(lib)
			require.NoError(t, err)
			require.Equal(t, "580.1", top.Driver)
			require.Len(t, top.GPUs, len(tc.gpus))
			for i, g := range top.GPUs {
				require.Equal(t, GPU{Name: "NVIDIA Test", UUID: fmt.Sprintf("GPU-%d", i), PCI: fmt.Sprintf("0000:%02x:00.0", i+1), Memory: 1 << 30, NUMA: g.NUMA}, g)
			}
			require.Equal(t, tc.links, top.Links)
			require.Len(t, lib.ShutdownCalls(), 1)
		})
	}
}

// After an Init that fails nothing else is called: a mock without a function panics, and the real library ends the process.
func TestReadFails(t *testing.T) {
	for code, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "nvml: no libnvidia-ml.so.1 here: it comes with NVIDIA's driver",
		nvml.ERROR_DRIVER_NOT_LOADED: "nvml: NVIDIA's driver is not loaded on this machine",
		nvml.ERROR_UNKNOWN:           "nvml: nvmlInit failed with code 999",
	} {
		_, err := read(&mock.Interface{InitFunc: func() nvml.Return { return code }})
		require.EqualError(t, err, want)
	}
	lib := library(device(0, nil, nil))
	lib.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_GPU_IS_LOST }
	_, err := read(lib)
	require.EqualError(t, err, "nvml: GPU 0: nvmlDeviceGetHandleByIndex: code 15")
	require.Len(t, lib.ShutdownCalls(), 1)
}

func TestReadReal(t *testing.T) {
	top, err := Read()
	if _, none := os.Stat("/dev/nvidiactl"); none != nil {
		require.ErrorContains(t, err, "nvml: ")
		return
	}
	require.NoError(t, err)
	require.NotEmpty(t, top.GPUs)
}
