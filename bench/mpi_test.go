package main_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two engines under a real mpiexec, measured in turns.
func TestBackendsSideBySide(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.mpich")
	if err != nil {
		t.Skip("no mpiexec.mpich here (Debian: apt-get install mpich)")
	}
	out, errs, status := started(t, nil, mpiexec, "-n", "2", whole(t), "-backend", "cpu,mpi", "-b", "1K", "-e", "4K", "-n", "20")
	require.Zero(t, status, errs)
	require.Contains(t, out, "engine: cpu, mpi: MPICH")
	require.Contains(t, out, "# busbw (GB/s) out of place\n#       size       cpu       mpi        \n#       1024")
	require.Contains(t, out, "# Out of bounds values : 0 OK")
}
