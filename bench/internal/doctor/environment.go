package doctor

import (
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
)

// ofRanks are the variables that say which rank this is, or that are made anew for
// each job.
var ofRanks = []string{
	environ.Rank.Name, environ.LocalRank.Name, environ.LocalSize.Name, environ.Size.Name, environ.Root.Name, environ.RootFD.Name, environ.BlameFD.Name, environ.HostID.Name, environ.JobName.Name,
	"GOCCL_BENCH_*", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT",
	"PMI_RANK", "PMI_SIZE", "PALS_RANKID", "PALS_NODEID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_*",
	"SLURM_PROCID", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
	"MPI_LOCALRANKID", "FI_CXI_DEVICE_NAME",
}

func ofRank(name string) bool {
	return slices.ContainsFunc(ofRanks, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

// harm is a setting known to hurt.
type harm struct {
	name   string
	values []string // nil: any
	why    string
	remedy string
}

var harms = []harm{
	{"NCCL_DEBUG", []string{"INFO", "TRACE"}, "NCCL logs while it is measured", "NCCL_DEBUG=WARN"},
	{"NCCL_P2P_DISABLE", []string{"1"}, "GPUs of a node talk through host memory", "unset NCCL_P2P_DISABLE"},
	{"NCCL_SHM_DISABLE", []string{"1"}, "ranks of a node talk over the network", "unset NCCL_SHM_DISABLE"},
	{"NCCL_IB_DISABLE", []string{"1"}, "nodes talk over TCP sockets", "unset NCCL_IB_DISABLE"},
	{"NCCL_ALGO", nil, "one algorithm for all sizes", "unset NCCL_ALGO, except to compare"},
	{"NCCL_PROTO", nil, "one protocol for all sizes; LL128 may corrupt data on links that do not support it", "unset NCCL_PROTO, except to compare"},
	{"NCCL_LAUNCH_MODE", []string{"GROUP"}, "known to deadlock with more than one communicator", "unset NCCL_LAUNCH_MODE"},
	{"CUDA_LAUNCH_BLOCKING", []string{"1"}, "the host waits for each kernel", "unset CUDA_LAUNCH_BLOCKING"},
	{"HSA_ENABLE_SDMA", []string{"0"}, "copies take the GPU's compute units", "unset HSA_ENABLE_SDMA"},
	{"AMD_SERIALIZE_KERNEL", []string{"1", "2", "3"}, "the host waits for each kernel", "unset AMD_SERIALIZE_KERNEL"},
	{"FI_PROVIDER", []string{"tcp", "sockets", "tcp;ofi_rxm"}, "libfabric goes over TCP", "unset FI_PROVIDER"},
	{"I_MPI_FABRICS", []string{"shm:tcp"}, "Intel MPI goes over TCP", "unset I_MPI_FABRICS"},
	{"CCL_LOG_LEVEL", []string{"debug", "trace", "info"}, "oneCCL logs while it is measured", "CCL_LOG_LEVEL=warn"},
	{"CCL_PROCESS_LAUNCHER", []string{"none", "None"}, "oneCCL's ranks do not know their host's ranks", "set CCL_LOCAL_RANK and CCL_LOCAL_SIZE as well, or CCL_PROCESS_LAUNCHER=pmix or hydra"},
	{"MPICH_GPU_SUPPORT_ENABLED", []string{"1"}, "MPI uses the GPU beside the collectives library, which can deadlock", "MPICH_GPU_SUPPORT_ENABLED=0 unless MPI is what is measured"},
	{"GODEBUG", nil, "changes Go's runtime", "unset GODEBUG"},
	{environ.Log.Name, []string{"all"}, "ranks log while they are measured", "unset GOCCL_LOG"},
	{environ.Algo.Name, nil, "one algorithm for all sizes", "unset GOCCL_ALGO, except to compare"},
}

// hurts reports whether a value of h's variable is one that hurts.
func (h *harm) hurts(value string) bool {
	return value != "" && (h.values == nil || slices.Contains(h.values, value))
}
