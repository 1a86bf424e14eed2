package profile

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/internal/engine"
)

// auroraCores are the cores near each of a node's twelve tiles. Cores 0 and 52 are the
// system's.
var auroraCores = []string{"1-8", "9-16", "17-24", "25-32", "33-40", "41-48", "53-60", "61-68", "69-76", "77-84",
	"85-92", "93-100"}

// aurora has six GPUs of two tiles a node, and eight Slingshot adapters.
var aurora = Profile{
	Name:  "aurora",
	Ranks: tiles,
	Env: append(oneCCLOverMPI(), []Setting{
		{Name: "CCL_OP_SYNC", Value: "1", Reason: "without it oneCCL's allgatherv is known to fail on several nodes"},
		{Name: "FI_MR_CACHE_MONITOR", Value: "userfaultfd",
			Reason: "libfabric sees freed memory without hooks in malloc, which can deadlock"},
		{Name: "ZE_FLAT_DEVICE_HIERARCHY", Value: "FLAT", Reason: "each tile is a device: one rank each"},
		{Name: "CCL_ATL_SYNC_COLL", Value: "1", Above: 1024, Reason: "avoids hangs of oneCCL at this scale"},
		{Name: "FI_CXI_RX_MATCH_MODE", Value: "hybrid", Above: 1024,
			Reason: "messages match in software when the adapter's list is full"},
		{Name: "FI_CXI_OFLOW_BUF_SIZE", Value: "8388608", Above: 1024, Reason: "room for messages that nobody waits for yet"},
		{Name: "FI_CXI_DEFAULT_CQ_SIZE", Value: "1048576", Above: 1024,
			Reason: "the adapter's event queue overflows with the default"},
		{Name: "FI_CXI_CQ_FILL_PERCENT", Value: "30", Above: 1024, Reason: "senders slow down before the queue is full"},
		{Name: "PALS_PING_PERIOD", Value: "240", Above: 1024, Reason: "PALS gives slow nodes time to answer"},
		{Name: "PALS_RPC_TIMEOUT", Value: "240", Above: 1024, Reason: "PALS gives slow nodes time to start"},
	}...),
	launcher: "pals",
	flags: func(getenv func(string) string, perNode int) ([]string, string) {
		if perNode > len(auroraCores) {
			return []string{"--cpu-bind", "depth", "-d", fmt.Sprint(max(1, 104/perNode))}, "each rank on cores of its own"
		}
		var cores []string
		for r := range perNode {
			at := auroraCores[r*len(auroraCores)/perNode : (r+1)*len(auroraCores)/perNode]
			cores = append(cores, strings.Join(at, ","))
		}
		return []string{"--cpu-bind", "list:" + strings.Join(cores, ":")},
			"each rank on the cores near its tile; 0 and 52 are the system's"
	},
}

// oneCCLOverMPI are the settings that a program without bench gets from package ccl.
func oneCCLOverMPI() (list []Setting) {
	for _, v := range engine.OneCCLOverMPI {
		list = append(list, Setting{Name: v.Name, Value: v.Value, Reason: v.Reason})
	}
	return list
}

// tiles is how many devices a node of Aurora has, which depends on how the driver
// counts: GPUs, or their tiles.
func tiles(getenv func(string) string) (int, string) {
	if mask := getenv("ZE_AFFINITY_MASK"); mask != "" {
		return strings.Count(mask, ",") + 1, "ZE_AFFINITY_MASK names so many devices"
	}
	if strings.EqualFold(getenv("ZE_FLAT_DEVICE_HIERARCHY"), "COMPOSITE") {
		return 6, "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: a device is a GPU"
	}
	return 12, "a device is a tile (ZE_FLAT_DEVICE_HIERARCHY is not COMPOSITE)"
}

// polaris has four A100 a node, which count against the cores: GPU 0 is near 24-31.
var polaris = Profile{
	Name:  "polaris",
	Ranks: func(func(string) string) (int, string) { return 4, "four GPUs" },
	Env: []Setting{
		{Name: "NCCL_NET", Value: "AWS Libfabric", Above: 1,
			Reason: "NCCL uses Slingshot through its libfabric plugin, 2-3 times faster than sockets"},
		{Name: "NCCL_NET_GDR_LEVEL", Value: "PHB", Reason: "the adapter reads GPU memory where both hang on one CPU"},
		{Name: "NCCL_CROSS_NIC", Value: "1", Reason: "rings may use both adapters of a node"},
		{Name: "NCCL_COLLNET_ENABLE", Value: "1", Reason: "as the centre's guide has it"},
		{Name: "FI_CXI_DISABLE_HOST_REGISTER", Value: "1",
			Reason: "libfabric calls CUDA's registration from NCCL's thread, which deadlocks"},
		{Name: "FI_MR_CACHE_MONITOR", Value: "userfaultfd",
			Reason: "libfabric sees freed memory without hooks in malloc, which can deadlock"},
		{Name: "FI_CXI_DEFAULT_CQ_SIZE", Value: "131072", Reason: "the adapter's event queue overflows with the default"},
		{Name: "LD_LIBRARY_PATH", Value: "/soft/libraries/hwloc/lib", Prepend: true, Reason: "what the plugin needs"},
		{Name: "LD_LIBRARY_PATH", Value: "/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib", Prepend: true,
			Reason: "NCCL's libfabric plugin"},
	},
	launcher: "pals",
	flags: func(_ func(string) string, perNode int) ([]string, string) {
		if perNode == 4 {
			return []string{"--cpu-bind", "list:24-31:16-23:8-15:0-7"}, "each rank on the cores near its GPU"
		}
		return []string{"--cpu-bind", "depth", "-d", fmt.Sprint(max(1, 32/perNode))}, "each rank on cores of its own"
	},
}
