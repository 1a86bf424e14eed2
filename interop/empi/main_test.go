package empi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/emer/empi/mpi"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/interop/empi"
)

func TestMain(m *testing.M) {
	if os.Getenv("EMPI_SCENE") != "real" {
		os.Exit(m.Run())
	}
	if err := overMPI(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// overMPI is a rank of TestOpenMPI: empi and goccl reduce the same.
func overMPI() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := mpi.InitThreadSafe(); err != nil {
		return err
	}
	world, err := mpi.NewComm(nil)
	if err != nil {
		return err
	}
	c, err := ccl.NewComm(ctx, empi.Bootstrap(world), nil)
	if err != nil {
		return err
	}
	x, y := make([]float32, 8329), make([]float32, 8329)
	for i := range x {
		x[i] = float32(i) / float32(1+c.Rank())
		y[i] = x[i]
	}
	if err := errors.Join(world.AllReduceF32(mpi.OpSum, x, nil), ccl.AllReduce(ctx, c, y, y, ccl.Sum)); err != nil {
		return err
	}
	for i := range x {
		if x[i] != y[i] {
			return fmt.Errorf("element %d: %v of empi, %v of goccl", i, x[i], y[i])
		}
	}
	fmt.Printf("rank %d of %d: the same\n", c.Rank(), c.Size())
	err = c.Close()
	mpi.Finalize()
	return err
}

// need skips a test that something is missing for, or fails it where all tests are required.
func need(t *testing.T, there bool, what, packages string) {
	t.Helper()
	if there {
		return
	}
	if os.Getenv("GOCCL_REQUIRE") == "all" {
		t.Fatalf("no %s (Debian: apt-get install %s)", what, packages)
	}
	t.Skipf("no %s (Debian: apt-get install %s)", what, packages)
}

// needOpenMPI is for what is built with the real empi: it knows Open MPI alone.
func needOpenMPI(t *testing.T) {
	t.Helper()
	need(t, exec.Command("pkg-config", "ompi").Run() == nil, "headers of Open MPI by way of pkg-config", "gcc libc6-dev pkg-config libopenmpi-dev")
	_, err := exec.LookPath("mpirun.openmpi")
	need(t, err == nil, "mpirun.openmpi", "openmpi-bin")
}

// run runs a command to its end, in a directory.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	os.Getenv("GOCCL_TEST_TREE") // what it builds, go test does not see: see Whole of test/cache
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// mpirun runs a program as two ranks of Open MPI.
func mpirun(t *testing.T, dir string, env []string, program ...string) string {
	t.Helper()
	env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_btl_base_warn_component_unused=0",
		"OMPI_MCA_mpi_yield_when_idle=1") // ranks that share a core
	args := append([]string{"--oversubscribe", "--bind-to", "none", "--timeout", "120", "-np", "2"}, program...)
	return run(t, dir, env, "mpirun.openmpi", args...)
}
