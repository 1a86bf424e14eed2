package mpi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
)

func init() {
	scenes["print"] = joined(func(*mpi.Comm) error {
		mpi.Printf("one %d\n", 1)
		mpi.AllPrintf("two %d\n", 2)
		mpi.PrintAllProcs = true
		mpi.Println("three", 3)
		return nil
	})
}

func TestPrint(t *testing.T) {
	out, err := played(t, "print", 2)
	require.NoError(t, err, out)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	require.Equal(t, []string{"[0] P0: two 2", "[0] one 1", "[0] three 3", "[1] P1: three 3", "[1] P1: two 2"}, lines)
}
