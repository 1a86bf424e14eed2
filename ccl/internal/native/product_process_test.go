//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/gpu"
)

// What TestProductProcess, as one rank, is to do, and with which backend.
const (
	endingVariable  = "NATIVE_TEST_ENDING"
	wrongVariable   = "NATIVE_TEST_WRONG" // a library
	backendVariable = "NATIVE_TEST_BACKEND"
)

// TestProductProcess is no test of its own: it is what the processes run that ranksOf starts.
func TestProductProcess(t *testing.T) {
	how := os.Getenv(endingVariable)
	if how == "" {
		return // run by other tests, in processes of their own
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	where, err := boot.Detect(os.Getenv)
	require.NoError(t, err)
	if how == "version" && where.Rank == 1 {
		t.Setenv("FAKE_NCCL_VERSION", "22704")
	}
	name := os.Getenv(backendVariable)
	if wrong := os.Getenv(wrongVariable); wrong != "" {
		t.Setenv(libraryOf[name], wrong)
	}
	err = product(ctx, name, map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP}[name], how)
	var e *ccl.Error
	errors.As(err, &e)
	fmt.Printf("rank %d: code %d peer %d: %v\n", where.Rank, e.Code, e.Peer, err)
}

// product makes calls until one fails. Rank 1 is killed, with how "killed".
func product(ctx context.Context, name string, rt *gpu.Runtime, how string) error {
	c, err := ccl.Join(ctx, &ccl.Options{Backend: name})
	if err != nil {
		return err
	}
	defer c.Close()
	p := c.Place()
	d, err := rt.Local(p.Local, p.Locals)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	r := &on{c: c, d: d, s: s, q: c.On(s), me: c.Rank(), n: c.Size()}
	if err := r.sums(ctx, 3); err != nil {
		return err
	}
	if how == "killed" && c.Rank() == 1 {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	err = r.sums(ctx, 1<<30)
	if e := s.Wait(ctx); e != nil {
		return fmt.Errorf("the stream is not released: %w", e)
	}
	return err
}

// ranksOf runs n processes, and is what they print.
func ranksOf(t *testing.T, n int, backend, how string) string {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var out bytes.Buffer
	start := time.Now()
	err := boot.Spawn(ctx, boot.Command{N: n, Path: os.Args[0], KeepGoing: true, Args: []string{"-test.run=^TestProductProcess$"},
		Env: append(os.Environ(), endingVariable+"="+how, backendVariable+"="+backend), Stdout: &out, Stderr: &out})
	require.NoError(t, ctx.Err(), "%v\n%s", err, &out)
	require.Less(t, time.Since(start), soon, "%s", &out)
	return out.String()
}

// TestProductKilled: the survivors name the rank that was killed, and their streams are released, whether the
// library notices or not.
func TestProductKilled(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		for _, silent := range []string{"0", "1"} {
			t.Run("silent="+silent, func(t *testing.T) {
				t.Setenv("FAKE_NCCL_SILENT_DEATH", silent)
				out := ranksOf(t, 3, name, "killed")
				for _, rank := range []int{0, 2} {
					require.Contains(t, out, fmt.Sprintf("rank %d: code %d peer 1: ", rank, ccl.ErrRankLost))
				}
			})
		}
	})
}

// TestProductVersions: libraries that differ between ranks are an error that lists who has what.
func TestProductVersions(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		out := ranksOf(t, 3, name, "version")
		for rank := range 3 {
			require.Contains(t, out, fmt.Sprintf("rank %d: code %d peer 1: ", rank, ccl.ErrVersion))
		}
		require.Contains(t, out, "ranks 0, 2: ")
		require.Contains(t, out, "2.27.4 (FAKE)")
	})
}

// TestProductTooFewDevices: more ranks than devices is an error on all, which says how to share one on purpose.
func TestProductTooFewDevices(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		t.Setenv("FAKE_DEVICES", "1")
		out := ranksOf(t, 2, name, "devices")
		for rank := range 2 {
			require.Contains(t, out, fmt.Sprintf("rank %d: code %d peer 1: ", rank, ccl.ErrBackend))
		}
		require.Contains(t, out, "local rank 1 of 2 has no device of its own")
		require.Contains(t, out, "to share one on purpose, name it")
	})
}

// TestProductWrongLibrary: what is no such library is said to be none, and what was looked for.
func TestProductWrongLibrary(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libnccl.so.2")
	require.NoError(t, os.WriteFile(text, []byte("not a library\n"), 0o600))
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		for what, tc := range map[string]struct{ file, want string }{
			"libc":    {"libc.so.6", "it has no function ncclGetVersion"},
			"text":    {text, text},
			"missing": {"/nowhere/libnccl.so", "/nowhere/libnccl.so"},
		} {
			t.Run(what, func(t *testing.T) {
				t.Setenv(wrongVariable, tc.file)
				out := ranksOf(t, 1, name, "library")
				require.Contains(t, out, fmt.Sprintf("rank 0: code %d peer 0: ", ccl.ErrBackend))
				require.Contains(t, out, tc.want)
			})
		}
	})
}
