//go:build mpi

package ccl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// MPI is the bootstrap only under a launcher that speaks with it: the others are left to boot.Env, without a look at MPI.
func TestOverMPIUnknown(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"MPI is unwanted":    {"GOCCL_MPI_LIB": "none", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"},
		"no launcher":        {"GOCCL_LAUNCHER": "none"},
		"goccl's own":        {"GOCCL_RANK": "0", "GOCCL_SIZE": "1"},
		"torchrun":           {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "1"},
		"srun without PMIx":  {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1", "PMIX_RANK": ""},
		"an environment for": {"GOCCL_LAUNCHER": "openmpi"}, // which has not started this process: boot.Env says so
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			b, known, err := overMPI(t.Context())
			require.NoError(t, err)
			require.False(t, known)
			require.Nil(t, b)
		})
	}
}

// The backend and the launcher are there in a build with MPI.
func TestMPICompiledIn(t *testing.T) {
	require.Contains(t, Backends(), "mpi")
	require.Len(t, launchers, 1)
}
