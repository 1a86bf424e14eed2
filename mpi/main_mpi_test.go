//go:build mpi && cgo

package mpi_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/goccl/goccl/mpi"
)

// The tests of this tag are run by all ranks of a job at once (test/mpi starts them under each MPI);
// without a launcher they are a job of one rank. A rank that fails ends the job.
func TestMain(m *testing.M) {
	levels := map[string]mpi.Level{"single": mpi.Single, "serialized": mpi.Serialized}
	if level, ok := levels[os.Getenv("GOCCL_MPI_TEST_LEVEL")]; ok {
		mpi.SetWants(level)
	}
	if scene := os.Getenv("GOCCL_MPI_SCENE"); scene != "" {
		code := scenes[scene]()
		if code != 0 { // Hydra ends the job at once, and drops what it has not read
			time.Sleep(200 * time.Millisecond)
		}
		os.Exit(code)
	}
	if err := mpi.Init(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if code != 0 && mpi.World().Size() > 1 {
		mpi.World().Abort(code)
	}
	if err := mpi.Finalize(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}
