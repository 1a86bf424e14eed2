package boot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each reader takes its launcher's variables, and leaves alone what they do not say.
func TestLaunchers(t *testing.T) {
	for _, tc := range []struct {
		name string
		read func(*vars) Launch
		env  map[string]string
		want Launch
	}{
		{"goccl", readGoccl, map[string]string{"GOCCL_RANK": "3", "GOCCL_SIZE": "4", "GOCCL_LOCAL_RANK": "1", "GOCCL_LOCAL_SIZE": "2", "GOCCL_JOB": "j"},
			Launch{Rank: 3, Size: 4, Local: 1, Locals: 2, Node: -1, Nodes: -1, Job: "j"}},
		{"goccl on one host", readGoccl, map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "GOCCL_LOCAL_RANK": "1", "GOCCL_LOCAL_SIZE": "2"},
			Launch{Rank: 1, Size: 2, Local: 1, Locals: 2, Node: 0, Nodes: 1}},
		{"torchrun", readTorchrun, map[string]string{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
			"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "2"},
			Launch{Rank: 5, Size: 8, Local: 1, Locals: 4, Node: 1, Nodes: 2, Job: "none@h:29500.2"}},
		{"plain", ranksOf, map[string]string{"RANK": "0", "WORLD_SIZE": "2"},
			Launch{Rank: 0, Size: 2, Local: -1, Locals: -1, Node: -1, Nodes: -1}},
		{"Open MPI 4", readOpenMPI, map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
			"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_NODE_RANK": "7", "OMPI_MCA_ess_base_jobid": "42", "PMIX_NAMESPACE": "n"},
			Launch{Rank: 1, Size: 4, Local: 0, Locals: 2, Node: -1, Nodes: -1, Job: "42"}},
		{"Open MPI 5", readOpenMPI, map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
			"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "n"},
			Launch{Rank: 1, Size: 2, Local: 1, Locals: 2, Node: 0, Nodes: 1, Job: "n"}},
		{"Hydra", readPMI, map[string]string{"PMI_RANK": "2", "PMI_SIZE": "3", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"},
			Launch{Rank: 2, Size: 3, Local: 0, Locals: 1, Node: -1, Nodes: -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := varsOf(tc.env, nil)
			require.Equal(t, tc.want, tc.read(v))
			require.NoError(t, v.err)
		})
	}
}

// A rank without a size is an error that names both variables.
func TestLaunchersHalf(t *testing.T) {
	for rank, f := range map[string]family{"GOCCL_RANK": families[0], "RANK": families[1], "OMPI_COMM_WORLD_RANK": families[2], "PMI_RANK": families[3]} {
		v := varsOf(map[string]string{rank: "1"}, nil)
		require.Equal(t, -1, f.read(v).Size, rank)
		require.ErrorContains(t, v.err, f.size+" is not set, though "+rank+"=1 is", rank)
	}
}

// PMI-1 needs a way to the process manager; Cray's port alone, under PALS, is none.
func TestHasPMI(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"PMI_RANK": "0"}, false},
		{map[string]string{"PMI_RANK": "0", "PMI_FD": "3"}, true},
		{map[string]string{"PMI_RANK": "0", "PMI_PORT": "h:1"}, true},
		{map[string]string{"PMI_FD": "3"}, false},
		{map[string]string{"PMI_RANK": "0", "PMI_CONTROL_PORT": "1"}, true},
		{map[string]string{"PMI_RANK": "0", "PMI_CONTROL_PORT": "1", "PALS_RANKID": "0"}, false},
	} {
		require.Equal(t, tc.want, hasPMI(varsOf(tc.env, nil)), "%v", tc.env)
	}
}
