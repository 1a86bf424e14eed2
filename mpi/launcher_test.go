package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/mpi"
)

// What doctor looks for is what is opened.
func TestLibraries(t *testing.T) {
	require.Equal(t, mpi.Libraries(), engine.MPI.Files.Names)
}

func TestLauncher(t *testing.T) {
	openMPI := map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
	hydra := map[string]string{"PMI_RANK": "1", "PMI_SIZE": "4", "PMI_FD": "7"}
	step := map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
	with := func(maps ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range maps {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for _, tc := range []struct {
		name       string
		env        map[string]string
		launcher   string
		rank, size int
		first      string // the library that is tried first
		err        string
	}{
		{name: "none", rank: -1, size: -1, first: "libmpi.so.12"},
		{name: "Open MPI", env: openMPI, launcher: "Open MPI's mpirun", rank: 1, size: 4, first: "libmpi.so.40"},
		{name: "Open MPI elsewhere", env: with(openMPI, map[string]string{"OPAL_PREFIX": "/opt/open"}),
			launcher: "Open MPI's mpirun", rank: 1, size: 4, first: "/opt/open/lib/libmpi.so.40"},
		{name: "Hydra", env: hydra, launcher: "a launcher of MPICH's family", rank: 1, size: 4, first: "libmpi.so.12"},
		{name: "Intel's Hydra", env: with(hydra, map[string]string{"I_MPI_MPIRUN": "mpirun", "I_MPI_ROOT": "/opt/intel"}),
			launcher: "a launcher of MPICH's family", rank: 1, size: 4, first: "/opt/intel/lib/libmpi.so.12"},
		{name: "Hydra beside an installed Intel MPI", env: with(hydra, map[string]string{"I_MPI_ROOT": "/opt/intel"}),
			launcher: "a launcher of MPICH's family", rank: 1, size: 4, first: "libmpi.so.12"},
		{name: "PALS", env: map[string]string{"PALS_RANKID": "1", "PMI_RANK": "1", "PMI_SIZE": "4"}, launcher: "PALS' mpiexec", rank: 1, size: 4, first: "libmpi.so.12"},
		{name: "PALS over PMIx says no size", env: map[string]string{"PALS_RANKID": "1"}, launcher: "PALS' mpiexec", rank: 1, size: -1, first: "libmpi.so.12"},
		{name: "srun", env: step, launcher: "srun", rank: 1, size: 4, first: "libmpi.so.12"},
		{name: "srun --mpi=pmix", env: with(step, map[string]string{"PMIX_RANK": "1"}), launcher: "srun", rank: 1, size: 4, first: "libmpi.so.40"},
		{name: "srun --mpi=pmi2", env: with(step, hydra), launcher: "srun --mpi=pmi2", rank: 1, size: 4, first: "libmpi.so.12"},
		{name: "Open MPI in a step", env: with(step, map[string]string{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"}),
			launcher: "Open MPI's mpirun", rank: 3, size: 8, first: "libmpi.so.40"},
		{name: "the shell of a job", env: map[string]string{"SLURM_STEP_ID": "4294967290", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
			rank: -1, size: -1, first: "libmpi.so.12"},
		{name: "two that agree", env: with(openMPI, hydra), launcher: "Open MPI's mpirun", rank: 1, size: 4, first: "libmpi.so.40"},
		{name: "two that do not", env: with(openMPI, map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2"}),
			err: "mpi: Init: two launchers contradict each other: rank 1 of 4 (Open MPI's variables) and rank 0 of 2 (PMI's); set GOCCL_LAUNCHER to the one that started this process: openmpi or pmi"},
		{name: "forced", env: with(openMPI, map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2", "GOCCL_LAUNCHER": "pmi"}),
			launcher: "a launcher of MPICH's family", rank: 0, size: 2, first: "libmpi.so.12"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name, rank, size, libraries, err := mpi.Launcher(func(k string) string { return tc.env[k] })
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				require.ErrorIs(t, err, mpi.ErrLibrary)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.launcher, name)
			require.Equal(t, [2]int{tc.rank, tc.size}, [2]int{rank, size})
			require.Equal(t, tc.first, libraries[0])
			require.Contains(t, libraries, "libmpi_abi.so.1")
		})
	}
}

func TestFits(t *testing.T) {
	hydra := map[string]string{"PMI_RANK": "1", "PMI_SIZE": "4", "PMI_FD": "7"}
	getenv := func(k string) string { return hydra[k] }
	require.NoError(t, mpi.Fits(getenv, 0, 1, 4), "MPICH's own")
	require.NoError(t, mpi.Fits(getenv, 2, 1, 4), "the standard ABI is of any launcher")
	require.EqualError(t, mpi.Fits(getenv, 1, 1, 4),
		"mpi: Init: this program loaded X 1.0 (/x.so), but a launcher of MPICH's family started it (PMI_RANK is set): each rank would be alone. Set GOCCL_MPI_LIB to that launcher's own library, or start the program with this library's launcher")
	require.EqualError(t, mpi.Fits(getenv, 0, 0, 1),
		"mpi: Init: X 1.0 (/x.so) sees this process as rank 0 of 1, but a launcher of MPICH's family started it as rank 1 of 4 (PMI_RANK is set): library and launcher do not match. Set GOCCL_MPI_LIB to the launcher's own library, or start the program with this library's launcher")
	require.NoError(t, mpi.Fits(func(string) string { return "" }, 1, 0, 1), "no launcher")
}

func TestShortVersion(t *testing.T) {
	for text, want := range map[string]string{
		"MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 12:34:45 CDT 2022\n":              "MPICH 4.0.2",
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022":     "Open MPI 4.1.4",
		"Intel(R) MPI Library 2021.19 for Linux* OS\n":                                               "Intel MPI 2021.19",
		"MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)\nMPI BUILD INFO : Wed Nov 1": "Cray MPICH 8.1.28.29",
		"MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date : Wed March 02":                       "MVAPICH 2.3.7",
		"Some MPI 1.0 \nmore": "Some MPI 1.0",
		"":                    "",
	} {
		require.Equal(t, want, mpi.ShortVersion(text))
	}
}

func TestAlone(t *testing.T) {
	for version, want := range map[string][2]bool{ // reads, writes
		"Open MPI 4.1.4": {true, true}, "Open MPI 3.1.0": {true, true}, "Open MPI 5.0.11": {false, true}, "Open MPI 10.0.0": {false, true},
		"MPICH 4.0.2": {}, "Intel MPI 2021.19": {}, "": {},
	} {
		require.Equal(t, want, [2]bool{mpi.Alone(version, false), mpi.Alone(version, true)}, version)
	}
}
