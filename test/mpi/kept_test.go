//go:build mpi

package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKept has a oneCCL that moves data over MPI beside Comms whose bootstrap is MPI: MPI stays initialised until the last of them is
// closed, is finalised then, and nobody calls it afterwards. The counter is put to the proof by a oneCCL of which goccl does not know
// that it uses MPI, and whose calls come too late.
func TestKept(t *testing.T) {
	m := installs()[0]
	m.here(t)
	dir := t.TempDir()
	counted, oneccl := filepath.Join(dir, "libmpi_counted.so"), filepath.Join(dir, "libccl.so.2")
	compile := func(args ...string) {
		out, err := exec.Command("cc", append([]string{"-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-I", m.includes(t)}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	compile("-o", counted, "testdata/kept/lib/mpi.c", "-Wl,--no-as-needed", m.lib)
	compile("-I", "../../include", "-o", oneccl, "testdata/kept/lib/oneccl.c", "-Wl,--no-as-needed", counted, m.lib)
	plugin := filepath.Join(dir, "libccl_legacy_cpu.so") // looked for, not opened
	require.NoError(t, os.WriteFile(plugin, nil, 0o666))
	program := built(t, "build", "-tags", "mpi,oneccl", "./testdata/kept")
	env := []string{"GOCCL_MPI_LIB=" + counted, "GOCCL_ONECCL_LIB=" + oneccl, "GOCCL_XPU_LIB=", "CCL_PLUGIN=" + plugin}

	out, status := m.job(t, 2, append(env, "CCL_ATL_TRANSPORT=mpi"), program, "again")
	require.Zero(t, status, out)
	for _, want := range []string{
		"world: the sum is 2, MPI initialised: true, finalised: false",
		"part: the sum is 2, MPI initialised: true, finalised: false",
		"counted: MPI_Finalize after other calls",
		"closed: MPI initialised: false, finalised: true",
		"again: ccl: rank 0: NewComm: oneCCL is to use MPI (CCL_ATL_TRANSPORT=mpi), which was finalised with the last Comm",
	} {
		require.Equal(t, 2, strings.Count(out, want), "%s\n%s", want, out)
	}
	require.NotContains(t, out, "after MPI_Finalize")

	out, status = m.job(t, 2, append(env, "CCL_ATL_TRANSPORT=ofi"), program)
	require.NotZero(t, status, out)
	require.Contains(t, out, "counted: MPI_", out)
	require.Contains(t, out, " after MPI_Finalize", out)
}
