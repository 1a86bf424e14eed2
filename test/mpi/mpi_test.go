//go:build mpi

package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pkg = "github.com/goccl/goccl/mpi"

// TestPackage runs package mpi's own tests as jobs.
func TestPackage(t *testing.T) {
	program := built(t, "test", pkg)
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			underEach(t, func(t *testing.T, m install) {
				out, status := m.job(t, n, nil, program, "-test.short")
				require.Zero(t, status, out)
				require.Equal(t, n, strings.Count(out, "PASS"), out)
			})
		})
	}
}

// TestLeaks is the same in full, which is long for what counts memory.
func TestLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	program := built(t, "test", pkg)
	underEach(t, func(t *testing.T, m install) {
		out, status := m.job(t, 2, nil, program, "-test.run", "Leak|Allocation")
		require.Zero(t, status, out)
	})
}

// TestSerialized has the library grant MPI_THREAD_SERIALIZED: all calls take turns.
func TestSerialized(t *testing.T) {
	program := built(t, "test", pkg)
	underEach(t, func(t *testing.T, m install) {
		out, status := m.job(t, 2, []string{"GOCCL_MPI_TEST_LEVEL=serialized"}, program, "-test.short")
		require.Zero(t, status, out)
	})
}

// TestBench runs bench, one file, with its engine mpi.
func TestBench(t *testing.T) {
	program := built(t, "build", "github.com/goccl/goccl/bench")
	out, _ := output2(t, nil, "ldd", program)
	require.NotContains(t, out, "mpi")
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			underEach(t, func(t *testing.T, m install) {
				out, status := m.job(t, n, nil, program, "-op", "all", "-backend", "mpi", "-b", "4", "-e", "64K", "-f", "16", "-n", "3", "-w", "1")
				require.Zero(t, status, out)
				require.Contains(t, out, "# Out of bounds values : 0 OK", out)
				require.Contains(t, out, "engine: mpi", out)
				if n > 2 {
					return
				}
				// Libraries differ in arithmetic: what each gets wrong by itself is in mpi/own.h.
				out, status = m.job(t, n, nil, program, "-op", "allreduce,reduce_scatter", "-backend", "mpi", "-d", "all", "-o", "all", "-b", "8", "-e", "4K", "-f", "512", "-n", "2", "-w", "1")
				require.Zero(t, status, out)
				require.Contains(t, out, "# Out of bounds values : 0 OK", out)
			})
		})
	}
}

// TestJoin has ccl.Join find MPI by itself, use it as its bootstrap, and leave it finalised, so that no
// launcher complains about how the ranks end.
func TestJoin(t *testing.T) {
	program := built(t, "build", "github.com/goccl/goccl/examples/hello")
	underEach(t, func(t *testing.T, m install) {
		out, status := m.job(t, 3, nil, program)
		require.Zero(t, status, out)
		require.Contains(t, out, "rank 2 of 3")
		require.Contains(t, out, "the ranks add up to 3")

		// MPI kept out of it: what the launcher's variables offer, where they offer a way.
		out, status = m.job(t, 2, []string{"GOCCL_MPI_LIB=none"}, program)
		require.Zero(t, status, out)
		require.Contains(t, out, "the ranks add up to 1")
	})
}

// TestScenes has what a process can do once.
func TestScenes(t *testing.T) {
	program := built(t, "test", pkg)
	scene := func(name string) []string { return []string{"GOCCL_MPI_SCENE=" + name} }
	underEach(t, func(t *testing.T, m install) {
		out, status := m.job(t, 2, scene("abort"), program)
		assert.Equal(t, 7, status, out)
		out, status = m.job(t, 2, scene("killed"), program)
		assert.NotZero(t, status, out)

		out, status = m.job(t, 4, scene("lasts"), program)
		assert.Zero(t, status, out)
		assert.Contains(t, out, "the last one turns off the light")

		out, status = m.job(t, 1, scene("before"), program)
		assert.Zero(t, status, out)
		for _, want := range []string{
			"mpi: Barrier: MPI is not initialised: call mpi.Init first",
			"mpi: Dup: MPI is not initialised: call mpi.Init first",
			"mpi: Finalize: MPI is not initialised: call mpi.Init first",
			"-1 0 0",
		} {
			assert.Contains(t, out, want)
		}
		out, status = m.job(t, 1, scene("after"), program)
		assert.Zero(t, status, out)
		for _, want := range []string{
			"mpi: Barrier: MPI was finalised",
			"mpi: Init: MPI was finalised, and cannot be initialised again",
			"mpi: Finalize: MPI was finalised already",
		} {
			assert.Contains(t, out, want)
		}
	})
}

// TestWrongLibrary has libraries that Init must refuse, with what to do.
func TestWrongLibrary(t *testing.T) {
	program := built(t, "test", pkg)
	text := filepath.Join(t.TempDir(), "libtext.so")
	require.NoError(t, os.WriteFile(text, []byte("this is no library, but longer than the header of one, which is sixty-four bytes"), 0o600))
	underEach(t, func(t *testing.T, m install) {
		other := "libmpi.so.40"
		if m.family == 1 {
			other = "libmpich.so.12"
		}
		for _, tc := range []struct{ lib, want string }{
			{"/no/such/libmpi.so", "mpi: Init: MPI cannot be loaded: GOCCL_MPI_LIB=/no/such/libmpi.so: cannot open shared object file: No such file or directory"},
			{text, "invalid ELF header"},
			{"libc.so.6", "is not an MPI library that can be used: it has no MPI_Init_thread"},
			{other, "each rank would be alone. Set GOCCL_MPI_LIB to that launcher's own library"},
		} {
			out, status := m.job(t, 2, []string{"GOCCL_MPI_SCENE=init", "GOCCL_MPI_LIB=" + tc.lib, "LD_LIBRARY_PATH="}, program)
			assert.NotZero(t, status, out)
			assert.Contains(t, out, tc.want)
		}
	})
}

// TestOverhead compares a call from Go with one from C. The promise is 80 ns; a machine in use by
// others is given ten times that, and the figures are logged.
func TestOverhead(t *testing.T) {
	program := built(t, "test", pkg)
	underEach(t, func(t *testing.T, m install) {
		if m.lib == "" || m.headers == "" {
			return // nothing to link the C program with
		}
		inC := filepath.Join(t.TempDir(), "overhead")
		lib := filepath.Join(m.lib, []string{"libmpi.so.12", "libmpi.so.40"}[m.family])
		out, status := output2(t, nil, "gcc", "-O2", "-I", m.headers, "-o", inC, "testdata/overhead.c", lib, "-Wl,--allow-shlib-undefined")
		require.Zero(t, status, out)
		var c, g []float64
		for range 5 {
			out, status := m.job(t, 1, nil, inC)
			require.Zero(t, status, out)
			c = append(c, numbers(out)...)
			out, status = m.job(t, 1, []string{"GOCCL_MPI_SCENE=overhead"}, program)
			require.Zero(t, status, out)
			g = append(g, numbers(out)...)
		}
		require.Len(t, c, 25)
		require.Len(t, g, 25)
		slices.Sort(c)
		slices.Sort(g)
		t.Logf("C %.0f ns, Go %.0f ns, Go beyond C: %.0f ns (medians; least %.0f, %.0f)", c[12], g[12], g[12]-c[12], c[0], g[0])
		require.Less(t, g[12]-c[12], 800.0)
	})
}

// numbers are the lines that are one.
func numbers(out string) (ns []float64) {
	for line := range strings.Lines(out) {
		if x, err := strconv.ParseFloat(strings.TrimSpace(line), 64); err == nil {
			ns = append(ns, x)
		}
	}
	return ns
}
