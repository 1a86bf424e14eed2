package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindBy(t *testing.T) {
	for _, tc := range []struct{ version, path, want string }{
		{"HYDRA build details:\n    Version: 4.0.2", "/usr/bin/mpiexec", "hydra"},
		{"Intel(R) MPI Library for Linux* OS, Version 2021.13", "/opt/intel/mpiexec", "hydra"},
		{"mpirun (Open MPI) 4.1.4", "/usr/bin/mpirun", "openmpi"},
		{"mpiexec (OpenRTE) 4.1.4", "/usr/bin/mpiexec", "openmpi"},
		{"prterun (PRRTE) 3.0", "/usr/bin/mpiexec", "openmpi"},
		{"mpiexec version 1.4", "/opt/cray/pals/1.4/bin/mpiexec", "pals"},
		{"PALS 1.4", "/usr/bin/mpiexec", "pals"},
		{"something else", "/usr/bin/mpiexec", ""},
		{"", "", ""},
	} {
		require.Equal(t, tc.want, kindBy(tc.version, tc.path), tc.version)
	}
}

func TestHasFlag(t *testing.T) {
	require.True(t, hasFlag([]string{"--cpus-per-task=7"}, "--cpus-per-task"))
	require.True(t, hasFlag([]string{"--cpu-bind", "none"}, "--cpu-bind"))
	require.False(t, hasFlag([]string{"--cpus-per-tasks"}, "--cpus-per-task"))
	require.False(t, hasFlag(nil, "-x"))
}
