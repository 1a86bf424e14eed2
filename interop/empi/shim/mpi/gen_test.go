package mpi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What gen.go writes is what is here.
func TestGenerated(t *testing.T) {
	gen, err := filepath.Abs("gen.go")
	require.NoError(t, err)
	os.Getenv("GOCCL_TEST_TREE") // what it builds, go test does not see: see Whole of test/cache
	cmd := exec.Command("go", "run", gen)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"numeric.go", "complex.go"} {
		want, err := os.ReadFile(filepath.Join(cmd.Dir, name))
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "go generate ./mpi writes another %s", name)
	}
}
