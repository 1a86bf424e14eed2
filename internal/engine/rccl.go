package engine

import "github.com/goccl/goccl/internal/environ"

// RCCL is AMD's library.
var RCCL = Backend{
	Name: "rccl", Title: "RCCL", Platform: "rocm",
	Files:    Files{environ.RCCLLib.Name, []string{"librccl.so.1", "librccl.so"}, "install RCCL of ROCm 5.2 or newer"},
	Hardware: Hardware{Vendor: "AMD", Node: "/dev/kfd", PCI: "0x1002"},
	Aliases:  []string{"hip", "rocm", "amd"},
	Settings: []string{"RCCL_*", "HSA_*"},
	Visible:  []string{"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"},
	Harms: []Harm{
		{"HSA_ENABLE_SDMA", []string{"0"}, "copies take the GPU's compute units", "unset HSA_ENABLE_SDMA"},
		{"AMD_SERIALIZE_KERNEL", []string{"1", "2", "3"}, "the host waits for each kernel", "unset AMD_SERIALIZE_KERNEL"},
	},
}
