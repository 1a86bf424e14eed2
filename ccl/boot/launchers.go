package boot

import (
	"cmp"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/plain"
)

// launch reads a launcher's variables: rank and size, which have to be there, and the place of the
// rank on its host, which may be missing.
func (v *vars) launch(job, rank, size, local, locals string) Launch {
	return Launch{
		Rank: v.number(rank, size), Size: v.number(size, rank),
		Local: v.maybe(local), Locals: v.maybe(locals),
		Node: -1, Nodes: -1,
		Job: job,
	}.oneHost()
}

// readGoccl reads what Spawn and users set.
func readGoccl(v *vars) Launch {
	return v.launch(environ.JobName.Text(v.getenv), environ.Rank.Name, environ.Size.Name, environ.LocalRank.Name,
		environ.LocalSize.Name)
}

// readTorchrun reads torchrun's. Its run id may be "none" for all of a user's jobs,
// and a restart keeps it: the job is told apart by the rendezvous and the restart too.
func readTorchrun(v *vars) Launch {
	const id = "TORCHELASTIC_RUN_ID"
	if !v.has("RANK") && !v.has("WORLD_SIZE") {
		v.fail("neither RANK nor WORLD_SIZE is set, though %s=%s is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)",
			id, plain.Clip(v.getenv(id)))
	}
	l := ranksOf(v)
	l.Node, l.Nodes = v.maybe("GROUP_RANK"), v.maybe("GROUP_WORLD_SIZE")
	l.Job = v.getenv(id) + "@" + v.getenv("MASTER_ADDR") + ":" + v.getenv("MASTER_PORT") +
		"." + v.getenv("TORCHELASTIC_RESTART_COUNT")
	return l
}

// ranksOf reads RANK and WORLD_SIZE.
func ranksOf(v *vars) Launch {
	return v.launch(environ.JobName.Text(v.getenv), "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
}

// readOpenMPI reads Open MPI's. OMPI_COMM_WORLD_NODE_RANK is no number of a node: it
// is the rank within the node, over all jobs there.
func readOpenMPI(v *vars) Launch {
	job := cmp.Or(v.getenv("OMPI_MCA_ess_base_jobid"), v.getenv("PMIX_NAMESPACE")) // the second is Open MPI 5's
	return v.launch(job, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE")
}

// hasPMI reports a process manager that speaks PMI-1 (Hydra, Intel MPI, Slurm's
// pmi2), or Cray's without PALS.
func hasPMI(v *vars) bool {
	return v.has("PMI_RANK") && (v.has("PMI_FD") || v.has("PMI_PORT") || v.has("PMI_CONTROL_PORT") &&
		!v.has("PALS_RANKID"))
}

// readPMI reads Hydra's and Slurm's. Slurm names its own step in PMI_JOBID; then,
// and only then, the step's variables are about this very process.
func readPMI(v *vars) Launch {
	l := v.launch(v.getenv("PMI_JOBID"), "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
	if hasStep(v) && l.Job != "" {
		if s := readSlurm(v); s.Job == l.Job && s.Rank == l.Rank && s.Size == l.Size {
			return s
		}
	}
	return l
}
