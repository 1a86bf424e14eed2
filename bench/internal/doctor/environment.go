package doctor

import (
	"slices"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
)

// ofRanks are the variables that say which rank this is, or that are made anew for
// each job.
var ofRanks = []string{
	environ.Rank.Name, environ.LocalRank.Name, environ.LocalSize.Name, environ.Size.Name, environ.Root.Name,
	environ.RootFD.Name, environ.BlameFD.Name, environ.HostID.Name, environ.JobName.Name,
	"GOCCL_BENCH_*", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT",
	"PMI_RANK", "PMI_SIZE", "PALS_RANKID", "PALS_NODEID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_*",
	"SLURM_PROCID", "MPI_LOCALRANKID", "FI_CXI_DEVICE_NAME",
}

func ofRank(name string) bool {
	return environ.Match(ofRanks, name) ||
		slices.ContainsFunc(engine.Backends(), func(b *engine.Backend) bool { return slices.Contains(b.Visible, name) })
}

// harms are settings known to hurt, those of the backends first.
func harms() []engine.Harm {
	var all []engine.Harm
	for _, b := range engine.Backends() {
		all = append(all, b.Harms...)
	}
	return append(all,
		engine.Harm{Name: "FI_PROVIDER", Values: []string{"tcp", "sockets", "tcp;ofi_rxm"}, Why: "libfabric goes over TCP",
			Remedy: "unset FI_PROVIDER"},
		engine.Harm{Name: "GODEBUG", Why: "changes Go's runtime", Remedy: "unset GODEBUG"},
		engine.Harm{Name: environ.Log.Name, Values: []string{"all", "debug"}, Why: "ranks log while they are measured",
			Remedy: "unset GOCCL_LOG"},
		engine.Harm{Name: environ.Algo.Name, Why: "one algorithm for all sizes",
			Remedy: "unset GOCCL_ALGO, except to compare"})
}

// hurts reports whether a value of h's variable is one that hurts.
func hurts(h *engine.Harm, value string) bool {
	return value != "" && (h.Values == nil || slices.Contains(h.Values, value))
}
