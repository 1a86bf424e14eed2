package engine

import "github.com/goccl/goccl/internal/environ"

// OneCCL is Intel's library, which takes one rank of a job per process: two of them would hang.
var OneCCL = Backend{
	Name: "oneccl", Title: "oneCCL", Platform: "xpu", Sole: true, Uninterruptible: true,
	Files: Files{environ.OneCCLLib.Name, []string{"libccl.so.2", "libccl.so.1", "libccl.so"},
		"install oneCCL 2021.17 or newer (libccl.so.2)"},
	Hardware: Hardware{Vendor: "Intel", PCI: "0x8086"},
	Aliases:  []string{"xpu", "sycl", "intel", "ccl"},
	Settings: []string{"CCL_*"},
	Visible:  []string{"ZE_AFFINITY_MASK"},
	Harms: []Harm{
		{"CCL_LOG_LEVEL", []string{"debug", "trace", "info"}, "oneCCL logs while it is measured", "CCL_LOG_LEVEL=warn"},
		{"CCL_PROCESS_LAUNCHER", []string{"none", "None"}, "oneCCL's ranks do not know their host's ranks",
			"set CCL_LOCAL_RANK and CCL_LOCAL_SIZE as well, or CCL_PROCESS_LAUNCHER=pmix or hydra"},
	},
	Failures: []Failure{
		{`(?i)index must be in \[0, ?6\)`,
			"12 ranks look for 6 devices: ZE_FLAT_DEVICE_HIERARCHY=FLAT makes each tile a device, or start 6 ranks a node (-ppn 6)"},
		{`(?i)enqueue process failed`, "a known problem of oneCCL on several nodes: set CCL_OP_SYNC=1, and if that does not help, CCL_ATL_SYNC_COLL=1"},
	},
}

// Variable is one that a library reads, what it is set to where nobody has, and why.
type Variable struct{ Name, Value, Reason string }

// OneCCLOverMPI are the settings with which oneCCL's ranks find each other, and go, over the MPI of the launcher.
var OneCCLOverMPI = []Variable{
	{"CCL_PROCESS_LAUNCHER", "pmix", "oneCCL asks PALS' PMIx for rank and size; its default, hydra, is not there"},
	{"CCL_ATL_TRANSPORT", "mpi", "oneCCL goes between nodes over MPI, which knows Slingshot"},
	{"CCL_KVS_MODE", "mpi", "oneCCL's ranks find each other over MPI instead of one TCP server"},
}

// ForOneCCL are OneCCLOverMPI in a job of size ranks, locals of them on this host, that PALS has
// started on several hosts, with the PMIx that these settings need. None of them is the user's
// then: who has set one has chosen, and says the others as well.
func ForOneCCL(launcher string, size, locals int, getenv func(string) string) []Variable {
	if launcher != "pals" || locals < 1 || size <= locals || getenv("PMIX_RANK") == "" {
		return nil
	}
	for _, v := range OneCCLOverMPI {
		if getenv(v.Name) != "" {
			return nil
		}
	}
	return OneCCLOverMPI
}
