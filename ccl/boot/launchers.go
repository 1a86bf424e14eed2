package boot

import "github.com/goccl/goccl/internal/environ"

// readGoccl reads what Spawn and users set.
func readGoccl(v *vars) Launch {
	return Launch{
		Rank: v.number(environ.Rank.Name, environ.Size.Name), Size: v.number(environ.Size.Name, environ.Rank.Name),
		Local: v.maybe(environ.LocalRank.Name), Locals: v.maybe(environ.LocalSize.Name),
		Node: -1, Nodes: -1,
		Job: environ.JobName.Text(v.getenv),
	}.oneHost()
}

// readTorchrun reads torchrun's. Its run id may be "none" for all of a user's jobs,
// and a restart keeps it: the job is told apart by the rendezvous and the restart too.
func readTorchrun(v *vars) Launch {
	l := ranksOf(v)
	l.Node, l.Nodes = v.maybe("GROUP_RANK"), v.maybe("GROUP_WORLD_SIZE")
	l.Job = v.getenv("TORCHELASTIC_RUN_ID") + "@" + v.getenv("MASTER_ADDR") + ":" + v.getenv("MASTER_PORT") +
		"." + v.getenv("TORCHELASTIC_RESTART_COUNT")
	return l
}

// ranksOf reads RANK and WORLD_SIZE.
func ranksOf(v *vars) Launch {
	return Launch{
		Rank: v.number("RANK", "WORLD_SIZE"), Size: v.number("WORLD_SIZE", "RANK"),
		Local: v.maybe("LOCAL_RANK"), Locals: v.maybe("LOCAL_WORLD_SIZE"),
		Node: -1, Nodes: -1,
		Job: environ.JobName.Text(v.getenv),
	}.oneHost()
}

// readOpenMPI reads Open MPI's. OMPI_COMM_WORLD_NODE_RANK is no number of a node: it
// is the rank within the node, over all jobs there.
func readOpenMPI(v *vars) Launch {
	l := Launch{
		Rank:  v.number("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
		Size:  v.number("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
		Local: v.maybe("OMPI_COMM_WORLD_LOCAL_RANK"), Locals: v.maybe("OMPI_COMM_WORLD_LOCAL_SIZE"),
		Node: -1, Nodes: -1,
		Job: v.getenv("PMIX_NAMESPACE"), // Open MPI 5
	}
	if id := v.getenv("OMPI_MCA_ess_base_jobid"); id != "" {
		l.Job = id
	}
	return l.oneHost()
}

// hasPMI reports a process manager that speaks PMI-1 (Hydra, Intel MPI, Slurm's
// pmi2), or Cray's without PALS.
func hasPMI(v *vars) bool {
	return v.has("PMI_RANK") && (v.has("PMI_FD") || v.has("PMI_PORT") || v.has("PMI_CONTROL_PORT") && !v.has("PALS_RANKID"))
}

// readPMI reads Hydra's and Slurm's. Slurm names its own step in PMI_JOBID; then,
// and only then, the step's variables are about this very process.
func readPMI(v *vars) Launch {
	l := Launch{
		Rank: v.number("PMI_RANK", "PMI_SIZE"), Size: v.number("PMI_SIZE", "PMI_RANK"),
		Local: v.maybe("MPI_LOCALRANKID"), Locals: v.maybe("MPI_LOCALNRANKS"),
		Node: -1, Nodes: -1,
		Job: v.getenv("PMI_JOBID"),
	}
	if hasStep(v) && l.Job != "" {
		if s := readSlurm(v); s.Job == l.Job && s.Rank == l.Rank && s.Size == l.Size {
			return s
		}
	}
	return l.oneHost()
}
