package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/program"
)

// One rank, without MPI: test/mpi runs the example on four ranks under each MPI.
func TestOneRank(t *testing.T) {
	path := program.Build(t)
	file := filepath.Join(t.TempDir(), "batches")
	require.NoError(t, os.WriteFile(file, make([]byte, 9999), 0o600)) // of an earlier run with more batches
	b, err := exec.Command(path, "-file", file, "-batches", "5", "-floats", "100", "-compare", "-rounds", "3").CombinedOutput()
	require.NoError(t, err, "%s", b)
	want := `^1 ranks have read 5 batches\nrank 0 was slowest: \d+\.\d+ s\n`
	for _, way := range []string{"mpi.ReadAtAll", "mpi.ReadAt", "os.File.ReadAt", "data.Readers"} {
		want += way + ` +\d\.\d{4} s \(\d\.\d{4} to \d\.\d{4}, 3 rounds\)\n`
	}
	require.Regexp(t, want+"$", string(b))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 5*100*4, info.Size())
}

func TestFloats(t *testing.T) {
	buf := make([]float32, 2)
	require.NoError(t, readFloats(bytes.NewReader([]byte{9, 0, 0, 0, 0, 0, 0, 0, 0, 9}), buf, 1))
	require.Equal(t, []float32{0, 0}, buf)
	require.Error(t, readFloats(bytes.NewReader(nil), buf, 0))
}
