package mpi

import (
	"path/filepath"
	"strconv"

	"github.com/goccl/goccl/internal/environ"
)

// family is a binary interface of MPI. The values are those of gmpi.h.
type family int

const (
	mpich family = iota
	openMPI
	standard
	anyFamily
)

// launch is what the environment says about the launcher of this process.
type launch struct {
	name       string // for people; "" for none
	because    string // the variable that says so
	family     family // whose libraries it starts
	rank, size int    // -1 where it does not say
}

// launcherOf reads the environment. Which launcher counts where there are several is as in
// ccl/boot: Open MPI's before PMI's before Slurm's, unless GOCCL_LAUNCHER says.
func launcherOf(getenv func(string) string) (launch, error) {
	number := func(name string) int {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n >= 0 {
			return n
		}
		return -1
	}
	var (
		open = launch{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", openMPI, number("OMPI_COMM_WORLD_RANK"),
			number("OMPI_COMM_WORLD_SIZE")}
		pmi  = launch{"a launcher of MPICH's family", "PMI_RANK", mpich, number("PMI_RANK"), number("PMI_SIZE")}
		pals = launch{"PALS' mpiexec", "PALS_RANKID", mpich, number("PALS_RANKID"), number("PMI_SIZE")}
		step = launch{"srun", "SLURM_STEP_ID", anyFamily, number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")}
	)
	// Ids from 0xfffffff0 on are those of shells and scripts, not of steps.
	inStep := number("SLURM_STEP_ID") >= 0 && number("SLURM_STEP_ID") < 0xfffffff0 && step.rank >= 0
	if inStep && step.rank == pmi.rank && step.size == pmi.size {
		pmi.name, pmi.family = "srun --mpi=pmi2", anyFamily // MPICH's way, but Open MPI may have been built for it
	}
	forced := environ.Launcher.Text(getenv)
	if forced == "" && open.size >= 0 && pmi.rank >= 0 && (open.rank != pmi.rank || open.size != pmi.size) {
		return launch{}, failed("Init", ErrLibrary,
			"two launchers contradict each other: rank %d of %d (Open MPI's variables) and rank %d of %d (PMI's); set GOCCL_LAUNCHER to the one that started this process: openmpi or pmi",
			open.rank, open.size, pmi.rank, pmi.size)
	}
	switch {
	case open.size >= 0 && (forced == "" || forced == "openmpi"):
		return open, nil
	case pals.rank >= 0 && (forced == "" || forced == "pals"):
		return pals, nil
	case pmi.rank >= 0 && (forced == "" || forced == "pmi"):
		return pmi, nil
	case inStep && (forced == "" || forced == "slurm"):
		return step, nil
	}
	return launch{family: anyFamily, rank: -1, size: -1}, nil
}

// The files of each family's library, most usual first.
var (
	openMPINames = []string{"libmpi.so.40"}
	mpichNames   = []string{
		"libmpi.so.12",     // MPICH, Intel MPI, MVAPICH, Cray MPICH's lib-abi-mpich
		"libmpich.so.12",   // Debian
		"libmpi_gnu.so.12", // Cray MPICH by the compiler it was built with, and its version
		"libmpi_gnu_123.so.12",
		"libmpi_gnu_112.so.12",
		"libmpi_gnu_91.so.12",
		"libmpi_cray.so.12",
		"libmpi_amd.so.12",
		"libmpi_nvidia.so.12",
		"libmpi_intel.so.12",
	}
	standardNames = []string{"libmpi_abi.so.1", "libmpi_abi.so.0"}
)

// libraries are the files to try for l, in order.
func (l launch) libraries(getenv func(string) string) []string {
	var names []string
	if prefix := getenv("OPAL_PREFIX"); prefix != "" && l.family != mpich {
		names = append(names, filepath.Join(prefix, "lib", openMPINames[0]))
	}
	// Intel's launcher sets I_MPI_MPIRUN; I_MPI_ROOT alone says only that Intel MPI is installed.
	if root := getenv("I_MPI_ROOT"); root != "" && getenv("I_MPI_MPIRUN") != "" && l.family == mpich {
		names = append(names, filepath.Join(root, "lib", mpichNames[0]), filepath.Join(root, "lib", "release", mpichNames[0]))
	}
	switch {
	case l.family == openMPI:
		names = append(names, openMPINames...)
	case l.family == mpich:
		names = append(names, mpichNames...)
	case getenv("PMIX_RANK") != "": // srun --mpi=pmix, which MPICH may not have been built for
		names = append(append(names, openMPINames...), mpichNames...)
	default:
		names = append(append(names, mpichNames...), openMPINames...)
	}
	return append(names, standardNames...)
}

// fits is nil, or why a library of family f and that version cannot be used under l.
func (l launch) fits(f family, version, path string) error {
	if l.family == anyFamily || f == standard || f == l.family {
		return nil
	}
	return failed("Init", ErrLibrary,
		"this program loaded %s (%s), but %s started it (%s is set): each rank would be alone. Set GOCCL_MPI_LIB to that launcher's own library, or start the program with this library's launcher",
		version, path, l.name, l.because)
}

// agrees is nil, or why a world of size ranks cannot be that of l.
func (l launch) agrees(rank, size int, version, path string) error {
	if l.size < 0 || l.size == size && (l.rank < 0 || l.rank == rank) {
		return nil
	}
	return failed("Init", ErrLibrary,
		"%s (%s) sees this process as rank %d of %d, but %s started it as rank %d of %d (%s is set): library and launcher do not match. Set GOCCL_MPI_LIB to the launcher's own library, or start the program with this library's launcher",
		version, path, rank, size, l.name, l.rank, l.size, l.because)
}
