//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/fake"
	"github.com/goccl/goccl/test/program"
)

// What TestProductProcess, as one rank, is to do, and with which backend.
const (
	endingVariable  = "NATIVE_TEST_ENDING"
	wrongVariable   = "NATIVE_TEST_WRONG" // a library
	backendVariable = "NATIVE_TEST_BACKEND"
	libraryVariable = "NATIVE_TEST_LIBRARY" // of world_test.go: all four libraries
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
	rt := map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP}[name]
	if how == "whole" {
		whole(ctx, t, name, rt)
		fmt.Printf("rank %d: all is right\n", where.Rank)
		return
	}
	err = product(ctx, name, rt, how)
	var e *ccl.Error
	errors.As(err, &e)
	fmt.Printf("rank %d: code %d peer %d: %v\n", where.Rank, e.Code, e.Peer, err)
}

// whole makes every collective, a group and a Split.
func whole(ctx context.Context, t *testing.T, name string, rt *gpu.Runtime) {
	c, err := ccl.Join(ctx, &ccl.Options{Backend: name})
	require.NoError(t, err)
	r := begin(t, c, rt)
	r.collectives()
	r.group()
	r.split(rt)
	require.NoError(t, c.Close())
}

// product makes calls until one fails. Rank 1 is killed, with how "killed".
func product(ctx context.Context, name string, rt *gpu.Runtime, how string) error {
	o := ccl.Options{Backend: name}
	if how == "hints" {
		o.Hints.TrafficClass = 7
	}
	c, err := ccl.Join(ctx, &o)
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
	if e := s.Wait(ctx); e != nil && how != "device" {
		return fmt.Errorf("the stream is not released: %w", e)
	}
	return err
}

// ranksOf runs n processes, and is what they print.
func ranksOf(t *testing.T, n int, backend, how string) string {
	text, _ := program.Itself(t, soon, boot.Command{N: n, KeepGoing: true}, "TestProductProcess", endingVariable+"="+how, backendVariable+"="+backend)
	return text
}

// allSay is ranksOf, all of which say text.
func allSay(t *testing.T, n int, name, role, text string) string {
	out := ranksOf(t, n, name, role)
	for rank := range n {
		require.Contains(t, out, fmt.Sprintf("rank %d: %s", rank, text))
	}
	return out
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

// TestProductDeviceFails: a device that fails, with all that is on it, is an error on every rank.
func TestProductDeviceFails(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		t.Setenv("FAKE_FAIL", "stream:30:700")
		allSay(t, 3, name, "device", fmt.Sprintf("code %d ", ccl.ErrBackend))
	})
}

// TestProductVersions: libraries that differ between ranks are an error that lists who has what.
func TestProductVersions(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		out := allSay(t, 3, name, "version", fmt.Sprintf("code %d peer 1: ", ccl.ErrVersion))
		require.Contains(t, out, "ranks 0, 2: ")
		require.Contains(t, out, "2.27.4 (FAKE)")
	})
}

// TestProductHintLacking: a hint that the library's version lacks is an error of every rank, which says so before it waits in the
// library for others.
func TestProductHintLacking(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		t.Setenv("FAKE_NCCL_VERSION", "22304")
		out := ranksOf(t, 3, name, "hints")
		for rank := range 3 {
			require.Contains(t, out, fmt.Sprintf("rank %d: code %d peer 0: ccl: rank %d: NewComm: ", rank, ccl.ErrUnsupported, rank))
		}
		require.Contains(t, out, "2.23.4 (FAKE) has no TrafficClass; that needs ")
	})
}

// TestProductTooFewDevices: more ranks than devices is an error on all, which says how to share one on purpose.
func TestProductTooFewDevices(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		t.Setenv("FAKE_DEVICES", "1")
		out := allSay(t, 2, name, "devices", fmt.Sprintf("code %d peer 1: ", ccl.ErrBackend))
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

// TestProductWithout: a library without a function that is needed, or one too old, is refused on every rank, which says
// what is wrong with which file. Without those that others can stand in for, all works.
func TestProductWithout(t *testing.T) {
	build := func(t *testing.T, without ...string) string {
		path, err := fake.Build(t.TempDir(), without...)
		require.NoError(t, err)
		return path
	}
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		t.Run("required", func(t *testing.T) {
			path := build(t, "ncclReduceScatter")
			t.Setenv(wrongVariable, path)
			out := allSay(t, 2, name, "library", fmt.Sprintf("code %d peer 0: ", ccl.ErrBackend))
			require.Contains(t, out, path)
			require.Contains(t, out, "it has no function ncclReduceScatter")
		})
		t.Run("old", func(t *testing.T) {
			t.Setenv("FAKE_NCCL_VERSION", "20804")
			out := allSay(t, 2, name, "library", fmt.Sprintf("code %d peer 0: ", ccl.ErrBackend))
			require.Contains(t, out, " 2.8.4, which is too old: ")
		})
		t.Run("optional", func(t *testing.T) {
			t.Setenv(libraryVariable, build(t, "ncclCommInitRankConfig", "ncclCommFinalize", "ncclCommSplit", "ncclCommShrink", "ncclAlltoAll", "ncclAllToAll", "ncclGather", "ncclScatter"))
			out := ranksOf(t, 3, name, "whole")
			for rank := range 3 {
				require.Contains(t, out, fmt.Sprintf("rank %d: all is right\n", rank), "%s", out)
			}
		})
	})
}
