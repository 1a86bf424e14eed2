package ccl

import (
	"errors"
	"os"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/engine"
)

// With CCL_ATL_TRANSPORT=mpi oneCCL moves data over MPI. It uses the MPI that it finds initialised,
// and initialises it itself where it finds none (src/atl/mpi/atl_mpi.cpp). Where that would abort
// the process, all ranks get an error instead.

// overMPITransport reports whether oneCCL is to use MPI: the user says so, or PALS has started the
// ranks on several hosts.
func overMPITransport() bool {
	if of := os.Getenv("CCL_ATL_TRANSPORT"); of != "" {
		return of == "mpi"
	}
	l, err := boot.Detect(os.Getenv)
	return err == nil && engine.ForOneCCL(l.Launcher, l.Size, l.Locals, os.Getenv) != nil
}

// leaveMPI is what a build without MPI shares with oneCCL: nothing.
func leaveMPI() (letGo func(left bool) error, err error) {
	if overMPITransport() {
		err = initialisesMPI(os.Getenv)
	}
	return nil, err
}

// initialisesMPI is nil where oneCCL can initialise MPI, else why it cannot: the PMI-1 connection
// of a launcher serves once, and ranks that no launcher with MPI has started are an MPI job each.
// The reason comes first: of an error that another rank has told, a rank knows only the beginning.
func initialisesMPI(getenv func(string) string) error {
	l, err := boot.Detect(getenv)
	if err != nil || l.Size == 1 {
		return nil
	}
	switch l.Launcher {
	case "openmpi", "pals", "slurm":
		return nil
	case "pmi":
		return errors.New("CCL_ATL_TRANSPORT=mpi, but the launcher's PMI connection serves once, and has found the ranks: build with -tags oneccl,mpi and leave GOCCL_MPI_LIB unset, so that MPI finds them, or call mpi.Init first")
	}
	return errors.New("CCL_ATL_TRANSPORT=mpi, but the ranks were not started by a launcher with MPI: start them with mpiexec, or leave the variable unset")
}
