package boot

import (
	"strconv"

	"github.com/goccl/goccl/internal/slurm"
)

// A step id from firstSpecialStep on is Slurm's own: a batch script, the shell of
// salloc, a pending step. The variables there describe the allocation's future
// steps: PROCID=0 of NTASKS=N in a process that is alone.
const firstSpecialStep = 0xfffffff0

// hasStep reports whether this process is a task of a Slurm step.
func hasStep(v *vars) bool {
	step, err := strconv.ParseUint(v.getenv("SLURM_STEP_ID"), 10, 64)
	return err == nil && step < firstSpecialStep && v.has("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
}

// readSlurm reads the step's variables. SLURM_NTASKS is the allocation's, or what
// another srun was asked for.
func readSlurm(v *vars) Launch {
	l := Launch{
		Rank: v.maybe("SLURM_PROCID"), Size: v.maybe("SLURM_STEP_NUM_TASKS"),
		Local: v.maybe("SLURM_LOCALID"), Locals: -1,
		Node: v.maybe("SLURM_NODEID"), Nodes: v.maybe("SLURM_STEP_NUM_NODES"),
		Job: v.getenv("SLURM_JOB_ID") + "." + v.getenv("SLURM_STEP_ID"),
	}
	if n, ok := slurm.OnNode(v.getenv("SLURM_STEP_TASKS_PER_NODE"), l.Node); ok {
		l.Locals = n
	}
	return l
}
