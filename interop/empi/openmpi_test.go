package empi_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenMPI starts goccl over the real empi, and both add the same numbers.
func TestOpenMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds itself anew")
	}
	needOpenMPI(t)
	binary := filepath.Join(t.TempDir(), "empi.test")
	cgo := []string{"CGO_ENABLED=1"}
	run(t, ".", cgo, "go", "vet", "-tags", "mpi", ".")
	run(t, ".", cgo, "go", "test", "-c", "-tags", "mpi", "-o", binary, ".")
	out := mpirun(t, ".", []string{"EMPI_SCENE=real"}, binary)
	require.Contains(t, out, "rank 0 of 2: the same\n")
	require.Contains(t, out, "rank 1 of 2: the same\n")
}
