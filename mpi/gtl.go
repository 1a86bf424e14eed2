//go:build mpi && cgo

package mpi

import (
	"os"

	"github.com/goccl/goccl/internal/dl"
)

// gtlNames are the files of Cray MPICH's GPU transport layer.
var gtlNames = []string{"libmpi_gtl_cuda.so.0", "libmpi_gtl_hsa.so.0"}

// openGTL opens Cray MPICH's GPU transport layer where MPICH_GPU_SUPPORT_ENABLED asks for it,
// before MPI's own library is. Programs are linked with it for that; MPI_Init ends one that is not:
// "GPU_SUPPORT_ENABLED is requested, but GTL library is not linked". Where there is none, MPI is
// told to do without, which host memory does.
func openGTL() {
	const name = "MPICH_GPU_SUPPORT_ENABLED"
	if v := os.Getenv(name); v == "" || v == "0" {
		return
	}
	if _, err := (dl.Search{What: "Cray MPICH's GTL", Names: gtlNames, Global: true}).Open(); err != nil {
		os.Setenv(name, "0") // also for C
	}
}
