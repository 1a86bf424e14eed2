package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two engines under a real mpiexec, measured in turns.
func TestBackendsSideBySide(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.mpich")
	if err != nil {
		t.Skip("no mpiexec.mpich here (Debian: apt-get install mpich)")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler here (Debian: apt-get install gcc libc6-dev)")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "mpi", "-o", filepath.Join(dir, "bench"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	run := exec.CommandContext(t.Context(), mpiexec, "-n", "2", filepath.Join(dir, "bench"), "-backend", "cpu,mpi", "-b", "1K", "-e", "4K", "-n", "20")
	run.Env = clean()
	out, err = run.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "engine: cpu, mpi: MPICH")
	require.Contains(t, string(out), "# busbw (GB/s) out of place\n#       size       cpu       mpi        \n#       1024")
	require.Contains(t, string(out), "# Out of bounds values : 0 OK")
}
