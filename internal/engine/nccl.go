package engine

import "github.com/goccl/goccl/internal/environ"

// NCCL is NVIDIA's library.
var NCCL = Backend{
	Name: "nccl", Title: "NCCL", Platform: "cuda",
	Files:    Files{environ.NCCLLib.Name, []string{"libnccl.so.2", "libnccl.so"}, "install NCCL 2.10 or newer"},
	Hardware: Hardware{Vendor: "NVIDIA", Node: "/dev/nvidia0", PCI: "0x10de"},
	Aliases:  []string{"cuda", "gpu", "nvidia"},
	Settings: []string{"NCCL_*"},
	Visible:  []string{"CUDA_VISIBLE_DEVICES"},
	Harms: []Harm{
		{"NCCL_DEBUG", []string{"INFO", "TRACE"}, "NCCL logs while it is measured", "NCCL_DEBUG=WARN"},
		{"NCCL_P2P_DISABLE", []string{"1"}, "GPUs of a node talk through host memory", "unset NCCL_P2P_DISABLE"},
		{"NCCL_SHM_DISABLE", []string{"1"}, "ranks of a node talk over the network", "unset NCCL_SHM_DISABLE"},
		{"NCCL_IB_DISABLE", []string{"1"}, "nodes talk over TCP sockets", "unset NCCL_IB_DISABLE"},
		{"NCCL_ALGO", nil, "one algorithm for all sizes", "unset NCCL_ALGO, except to compare"},
		{"NCCL_PROTO", nil, "one protocol for all sizes; LL128 may corrupt data on links that do not support it",
			"unset NCCL_PROTO, except to compare"},
		{"NCCL_LAUNCH_MODE", []string{"GROUP"}, "known to deadlock with more than one communicator",
			"unset NCCL_LAUNCH_MODE"},
		{"CUDA_LAUNCH_BLOCKING", []string{"1"}, "the host waits for each kernel", "unset CUDA_LAUNCH_BLOCKING"},
	},
	Failures: []Failure{
		{`(?i)mismatch(ed)? nccl version|nccl version mismatch`,
			"ranks load different NCCL: bench doctor shows which node has which"},
	},
}
