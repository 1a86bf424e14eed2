package engine

import "github.com/goccl/goccl/internal/environ"

// MPI is the job's MPI library. Package mpi, which is usable without engines, knows more names of its files by its family.
var MPI = Backend{
	Name: "mpi", Title: "MPI",
	Files:    Files{environ.MPILib.Name, []string{"libmpi.so.12", "libmpi.so.40", "libmpi_cray.so.12", "libmpi.so"}, "install MPICH or Open MPI"},
	Settings: []string{"MPICH_*", "I_MPI_*", "MPIR_CVAR_*"},
	Harms: []Harm{
		{"I_MPI_FABRICS", []string{"shm:tcp"}, "Intel MPI goes over TCP", "unset I_MPI_FABRICS"},
		{"MPICH_GPU_SUPPORT_ENABLED", []string{"1"}, "MPI uses the GPU beside the collectives library, which can deadlock",
			"MPICH_GPU_SUPPORT_ENABLED=0 unless MPI is what is measured"},
	},
}
