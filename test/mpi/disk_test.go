//go:build mpi

package mpi

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// mounted is a tmpfs of 1 MiB for the test.
func mounted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("goccl", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("hardware: no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// TestFullDisk has files on a disk that is full, and on one that is read-only.
func TestFullDisk(t *testing.T) {
	program, full, fixed := built(t, "test", pkg), mounted(t), mounted(t)
	require.NoError(t, os.WriteFile(filepath.Join(fixed, "file"), []byte("text"), 0o666))
	require.NoError(t, syscall.Mount("goccl", fixed, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	underEach(t, func(t *testing.T, m install) {
		out, status := m.job(t, 3, []string{"GOCCL_MPI_TEST_FULL=" + full, "GOCCL_MPI_TEST_FIXED=" + fixed}, program, "-test.v", "-test.run", "^TestFullDisk$")
		t.Log(out)
		require.Zero(t, status, out)
		require.Equal(t, 3, strings.Count(out, "--- PASS: TestFullDisk"), out)
	})
}

// TestHints has hints reach the library, and what it passes over be no error.
func TestHints(t *testing.T) {
	program := built(t, "test", pkg)
	for _, m := range installs()[:2] {
		t.Run(m.name, func(t *testing.T) {
			out, status := m.withTool(t).job(t, 2, nil, program, "-test.run", "^TestHints$")
			require.Zero(t, status, out)
			for _, want := range []string{"striping_factor=4", "striping_unit=65536", "cb_nodes=2", "of_nobody=a value"} {
				require.Equal(t, 2, strings.Count(out, "tool: hint "+want+"\n"), out)
			}
		})
	}
}

// TestBatchFile runs the example on four ranks under an MPI of each family: each rank reads its own batches of one file.
func TestBatchFile(t *testing.T) {
	program := built(t, "build", "github.com/goccl/goccl/examples/batchfile")
	underEach(t, func(t *testing.T, m install) {
		if m.name == "MPICH 5" || strings.HasPrefix(m.name, "Intel MPI") {
			return // these are of families that others here stand for
		}
		out, status := m.job(t, 4, nil, program, "-file", filepath.Join(t.TempDir(), "batches"), "-batches", "13", "-floats", "1000", "-compare")
		require.Zero(t, status, out)
		require.Contains(t, out, "4 ranks have read 12 batches\n") // as many on each rank
		require.Regexp(t, `data.Readers +\d`, out)
	})
}
