//go:build oneccl && cgo && linux

package oneccl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/stretchr/testify/require"
)

func init() { roles["kept"] = kept }

// kept has rank 1 keep many communicators that the others close: those that all close later are destroyed still.
func kept(r *rank) error {
	const many = 20
	var held []engine.Engine
	for i := range many + 3 {
		e, err := r.join()
		if err != nil {
			return err
		}
		if r.Rank() == 1 && i < many {
			held = append(held, e)
		} else if err := e.Close(); err != nil {
			return err
		}
	}
	e, err := r.join()
	if err != nil {
		return err
	}
	want := many
	if r.Rank() == 1 {
		want = 0
	}
	if n := oneccl.Left(); n != want {
		return fmt.Errorf("rank %d: %d communicators are closed and not destroyed, not %d", r.Rank(), n, want)
	}
	for _, e := range append(held, e) {
		if err := e.Close(); err != nil {
			return err
		}
	}
	return r.barrier()
}

func TestSweepBeyondKept(t *testing.T) { ranks(t, "kept", 2) }

// TestRelativePath has the library named by a path that begins where the program runs.
func TestRelativePath(t *testing.T) {
	needCPU(t)
	lib, err := filepath.Abs(os.Getenv("GOCCL_ONECCL_LIB"))
	require.NoError(t, err)
	dir, name := filepath.Split(lib)
	parent, folder := filepath.Split(filepath.Clean(dir))
	exe, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	args := os.Args[0]
	os.Args[0] = exe
	t.Cleanup(func() { os.Args[0] = args })
	t.Chdir(parent)
	for _, env := range [][]string{
		{"GOCCL_ONECCL_LIB=" + folder + "/" + name},
		{"GOCCL_ONECCL_LIB=" + name, "LD_LIBRARY_PATH=" + folder},
		{"GOCCL_ONECCL_LIB=", "LD_LIBRARY_PATH=/nowhere:" + folder},
	} {
		t.Run(env[0], func(t *testing.T) {
			out, err := run(t, "allocs", 1, append(env, "CCL_PLUGIN=")...)
			require.NoError(t, err, out)
		})
	}
}
