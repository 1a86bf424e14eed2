package engine

import "github.com/goccl/goccl/internal/environ"

// MPI is the job's MPI library. Its files are those that package mpi, which is usable without
// engines, tries under no launcher.
var MPI = Backend{
	Name: "mpi", Title: "MPI", Uninterruptible: true,
	Files: Files{environ.MPILib.Name, []string{"libmpi.so.12", "libmpich.so.12", "libmpi_gnu.so.12",
		"libmpi_gnu_123.so.12", "libmpi_gnu_112.so.12",
		"libmpi_gnu_91.so.12", "libmpi_cray.so.12", "libmpi_amd.so.12", "libmpi_nvidia.so.12", "libmpi_intel.so.12",
		"libmpi.so.40",
		"libmpi_abi.so.1", "libmpi_abi.so.0"}, "install MPICH or Open MPI"},
	Settings: []string{"MPICH_*", "I_MPI_*", "MPIR_CVAR_*"},
	Harms: []Harm{
		{"I_MPI_FABRICS", []string{"shm:tcp"}, "Intel MPI goes over TCP", "unset I_MPI_FABRICS"},
		{"MPICH_GPU_SUPPORT_ENABLED", []string{"1"}, "MPI uses the GPU beside the collectives library, which can deadlock",
			"MPICH_GPU_SUPPORT_ENABLED=0 unless MPI is what is measured"},
	},
}
