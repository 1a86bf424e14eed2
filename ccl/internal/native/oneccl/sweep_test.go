//go:build oneccl && cgo && linux

package oneccl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/stretchr/testify/require"
)

func init() { roles["kept"] = kept }

// kept has rank 1 keep many communicators that the others close: those that all close later are destroyed still.
func kept(r *rank) {
	const many = 20
	var held []engine.Engine
	for i := range many + 3 {
		if e := r.join(); r.Rank() == 1 && i < many {
			held = append(held, e)
		} else {
			require.NoError(r, e.Close())
		}
	}
	held = append(held, r.join())
	want := many
	if r.Rank() == 1 {
		want = 0
	}
	require.Equal(r, want, oneccl.Left(), "communicators that are closed and not destroyed")
	for _, e := range held {
		require.NoError(r, e.Close())
	}
	r.barrier()
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
