package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibraries(t *testing.T) {
	root := fake(t, map[string]string{
		"etc/ld.so.conf.d/a.conf":     "# comment\n/opt/vendor/lib\n",
		"opt/vendor/lib/libmpi.so.12": "->libmpi.so.12.1.8", "opt/vendor/lib/libmpi.so.12.1.8": "x",
		"usr/lib64/libmpi.so.40":    "y",
		"mine/libccl.so":            "z",
		"usr/lib/libnccl.so.2":      "->gone",
		"home/env/lib/libnccl.so.2": "xx",
	})
	found := libraries(root, getenvOf([]string{"GOCCL_ONECCL_LIB=/mine/libccl.so", "GOCCL_RCCL_LIB=/mine/gone.so", "CONDA_PREFIX=/home/env", "LD_LIBRARY_PATH=:relative"}))
	require.Equal(t, []library{
		{"nccl", "/home/env/lib/libnccl.so.2", "2 (2 bytes)"},
		{"rccl", "/mine/gone.so", "missing"},
		{"oneccl", "/mine/libccl.so", "? (1 bytes)"},
		{"mpi", "/opt/vendor/lib/libmpi.so.12", "12.1.8 (1 bytes)"},
	}, found)

	// A name without a directory is looked for; none is no library.
	found = libraries(root, getenvOf([]string{"GOCCL_NCCL_LIB=libmpi.so.40", "GOCCL_RCCL_LIB=libgone.so", "GOCCL_MPI_LIB=none"}))
	require.Equal(t, []library{{"nccl", "/usr/lib64/libmpi.so.40", "40 (1 bytes)"}, {"rccl", "libgone.so", "missing"}}, found)
}
