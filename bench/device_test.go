package main_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// whole is bench with every engine.
func whole(t *testing.T) string {
	if testing.Short() {
		t.Skip("-short: builds bench with C, as make gpu does")
	}
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no C compiler here (Debian: apt-get install gcc libc6-dev)")
	}
	require.True(t, wholeIsBuilt())
	return program + "-whole"
}

// wholeIsBuilt builds it once.
var wholeIsBuilt = sync.OnceValue(func() bool { return build(program+"-whole", ".", "nccl", "rccl", "oneccl", "mpi") })

// One file has all engines, needs the C library alone, runs where none of their libraries is, and says what it misses.
func TestOneFile(t *testing.T) {
	file := whole(t)
	if _, err := exec.LookPath("ldd"); err == nil {
		out, errs, status := started(t, nil, "ldd", file)
		require.Zero(t, status, errs)
		for line := range strings.Lines(out) {
			require.Regexp(t, `linux-vdso|libc\.so|libm\.so|ld-linux`, line)
		}
	}
	_, errs, status := started(t, nil, file, "-backend", "cpu", "-e", "1K")
	require.Zero(t, status, errs)
	for backend, wanted := range map[string][]string{
		"nccl":   {"libnccl.so.2", "install NCCL", "GOCCL_NCCL_LIB"},
		"rccl":   {"librccl.so.1", "install RCCL", "GOCCL_RCCL_LIB"},
		"oneccl": {"libccl.so.2", "install oneCCL", "GOCCL_ONECCL_LIB"},
	} {
		t.Run(backend, func(t *testing.T) {
			if _, err := os.Stat("/dev/nvidiactl"); err == nil {
				t.Skip("hardware: there may be a library here")
			}
			_, errs, status := started(t, nil, file, "-backend", backend, "-np", "2")
			require.Equal(t, 1, status, errs)
			for _, text := range wanted {
				require.Contains(t, errs, text)
			}
		})
	}
}

// Every operation on device memory of the fake NCCL and RCCL, in one process and in several.
func TestOnTheFake(t *testing.T) {
	file, env := whole(t), fake.Env(fake.Library(t))
	for _, backend := range []string{"nccl", "rccl"} {
		for _, ranks := range []string{"-np 1", "-np 2", "-np 3", "-np 4", "-t 2", "-t 3", "-t 4", "-np 2 -t 2"} {
			t.Run(backend+" "+ranks, func(t *testing.T) {
				out, errs, status := started(t, env, file, append(strings.Fields(ranks), "-backend", backend, "-op", "all", "-b", "8", "-e", "64K", "-f", "64", "-n", "2", "-w", "1")...)
				require.Zero(t, status, errs)
				require.Contains(t, out, "# Out of bounds values : 0 OK")
				require.Contains(t, out, "(FAKE)")
				require.NotContains(t, out, "not supported")
			})
		}
		for _, mem := range []string{"host", "managed"} {
			t.Run(backend+" "+mem, func(t *testing.T) {
				out, errs, status := started(t, env, file, "-np", "2", "-mem", mem, "-backend", backend, "-op", "all", "-b", "8", "-e", "4K", "-f", "64", "-n", "2", "-w", "1")
				require.Zero(t, status, errs)
				require.Contains(t, out, "# Out of bounds values : 0 OK")
			})
		}
	}
	t.Run("wrong result", func(t *testing.T) { // the knob by which the check is checked
		out, errs, status := started(t, append(env, "FAKE_NCCL_WRONG=3"), file, "-np", "2", "-backend", "nccl", "-b", "8", "-e", "8", "-n", "1", "-w", "0")
		require.Equal(t, 1, status, errs)
		require.Contains(t, out, "# Out of bounds values : 2 FAILED")
	})
}
