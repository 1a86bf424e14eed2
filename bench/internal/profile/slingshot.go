package profile

import "fmt"

// slingshot is what HPE gives for NCCL and RCCL.
var slingshot = []Setting{
	{Name: "FI_MR_CACHE_MONITOR", Value: "userfaultfd",
		Reason: "libfabric sees freed memory without hooks in malloc, which can deadlock"},
	{Name: "FI_CXI_DISABLE_HOST_REGISTER", Value: "1",
		Reason: "libfabric calls the GPU's registration from the library's thread, which deadlocks"},
	{Name: "FI_CXI_DEFAULT_CQ_SIZE", Value: "131072", Reason: "the adapter's event queue overflows with the default"},
	{Name: "FI_CXI_DEFAULT_TX_SIZE", Value: "2048", Reason: "room for the sends that the library keeps in flight"},
	{Name: "FI_CXI_RX_MATCH_MODE", Value: "hybrid", Reason: "messages match in software when the adapter's list is full"},
	{Name: "FI_CXI_RDZV_PROTO", Value: "alt_read",
		Reason: "large messages without rendezvous gets in the adapter (with --network=disable_rdzv_get)"},
	{Name: "FI_CXI_RDZV_EAGER_SIZE", Value: "0",
		Reason: "no eager part of large messages, which costs a copy in GPU memory"},
	{Name: "NCCL_CROSS_NIC", Value: "1", Reason: "rings may use all adapters of a node"},
	{Name: "NCCL_NET_GDR_LEVEL", Value: "PHB", Reason: "the adapter reads GPU memory where both hang on one CPU"},
	{Name: "NCCL_SOCKET_IFNAME", Value: "hsn0,hsn1,hsn2,hsn3",
		Reason: "the fast network for start-up too; if it hangs there, hsn0 alone"},
}

// frontier has four MI250X a node: eight devices. Of 64 cores 8 are the system's.
var frontier = Profile{
	Name:  "frontier",
	Ranks: func(func(string) string) (int, string) { return 8, "eight GPU dies" },
	Env: append([]Setting{
		{Name: "HSA_FORCE_FINE_GRAIN_PCIE", Value: "1", Reason: "GPUs of a node write to each other's memory"},
	}, slingshot...),
	launcher: "srun",
	flags: func(getenv func(string) string, perNode int) ([]string, string) {
		flags := []string{"--network=disable_rdzv_get", fmt.Sprintf("--cpus-per-task=%d", max(1, 56/perNode))}
		if perNode <= 8 {
			flags = append(flags, "--gpus-per-task=1", "--gpu-bind=closest")
		}
		return flags, "each rank on the cores near its GPU; 8 of 64 cores are the system's"
	},
}

// perlmutter has four A100 on its GPU nodes, and nodes without.
var perlmutter = Profile{
	Name: "perlmutter",
	Ranks: func(getenv func(string) string) (int, string) {
		if !gpus(getenv) {
			return 0, ""
		}
		return 4, "four GPUs"
	},
	Env: []Setting{
		{Name: "FI_MR_CACHE_MONITOR", Value: "userfaultfd",
			Reason: "libfabric sees freed memory without hooks in malloc, which can deadlock"},
		{Name: "FI_CXI_DISABLE_HOST_REGISTER", Value: "1",
			Reason: "libfabric calls the GPU's registration from the library's thread, which deadlocks"},
		{Name: "NCCL_NET_GDR_LEVEL", Value: "PHB", Reason: "the adapter reads GPU memory where both hang on one CPU"},
		{Name: "NCCL_CROSS_NIC", Value: "1", Reason: "rings may use all adapters of a node"},
	},
	launcher: "srun",
	flags: func(getenv func(string) string, perNode int) ([]string, string) {
		flags := []string{"--cpu-bind=cores"}
		if gpus(getenv) {
			flags = append(flags, "--gpus-per-node=4")
		}
		return flags, "each rank on cores of its own; all ranks see all GPUs"
	},
}

// gpus reports whether the allocation has any.
func gpus(getenv func(string) string) bool {
	for _, name := range []string{"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_JOB_GPUS", "SLURM_GPUS"} {
		if v := getenv(name); v != "" && v != "0" {
			return true
		}
	}
	return false
}
