//go:build mpi

package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrayGTL has an MPI that ends a program which wants it to reach GPUs and has not loaded its GPU transport layer, as
// Cray MPICH does: the layer is loaded before it where there is one, and not asked for where there is none.
func TestCrayGTL(t *testing.T) {
	m := installs()[0]
	m.here(t)
	dir := t.TempDir()
	with, lib := filepath.Join(dir, "gtl"), filepath.Join(dir, "libmpi_cray.so.12")
	require.NoError(t, os.Mkdir(with, 0o777))
	compile := func(args ...string) {
		out, err := exec.Command("cc", append([]string{"-shared", "-fPIC"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	compile("-o", lib, "-I", m.includes(t), "testdata/cray/mpi.c", "-Wl,--no-as-needed", m.lib, "-ldl")
	marker := filepath.Join(dir, "gtl.c")
	require.NoError(t, os.WriteFile(marker, []byte("int gtl_is_here;\n"), 0o666))
	compile("-o", filepath.Join(with, "libmpi_gtl_hsa.so.0"), marker)
	program := built(t, "build", "github.com/goccl/goccl/examples/hello")
	for _, tc := range []struct{ asked, path, want string }{
		{"1", with, "cray: GPU support 1, GTL loaded"},
		{"1", dir, "cray: GPU support 0, GTL not loaded"},
		{"0", with, "cray: GPU support 0, GTL not loaded"},
	} {
		out, status := m.job(t, 2, []string{"GOCCL_MPI_LIB=" + lib, "LD_LIBRARY_PATH=" + tc.path, "MPICH_GPU_SUPPORT_ENABLED=" + tc.asked}, program)
		require.Zero(t, status, out)
		require.Contains(t, out, tc.want)
		require.Contains(t, out, "the ranks add up to 1")
	}
}
