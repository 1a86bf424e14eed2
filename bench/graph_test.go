package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// onFake gives a function that runs bench, with every engine, on the fake library.
func onFake(t *testing.T) func(env []string, args ...string) (out, errs string, status int) {
	t.Helper()
	file, fakes := whole(t), append(fake.Env(fake.Library(t)), "FAKE_DEVICES=2")
	return func(env []string, args ...string) (string, string, int) {
		return started(t, slices.Concat(env, fakes), file, args...)
	}
}

// Iterations captured as a graph are measured, and their results checked.
func TestGraph(t *testing.T) {
	run := onFake(t)
	path := filepath.Join(t.TempDir(), "out.json")
	for _, args := range []string{"-op all", "-m 3 -rotate 2 -I", "-op reduce -r all -split mod:2 -t 2 -np 1", "-backend nccl -mem managed"} {
		out, errs, status := run(nil, strings.Fields("-np 2 -b 1K -e 2K -n 3 -G 2 -J "+path+" "+args)...)
		require.Zero(t, status, "%s: %s%s", args, out, errs)
		require.Contains(t, out, " graph: 2\n")
		require.Contains(t, out, "transport: nccl's own")
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var f struct {
			Config struct {
				Graph int `json:"graph"`
			}
		}
		require.NoError(t, json.Unmarshal(b, &f))
		require.Equal(t, 2, f.Config.Graph)
	}

	// One of the calls is the one that is checked.
	found := false
	for n := 1; n < 100 && !found; n++ {
		out, errs, status := run([]string{"FAKE_NCCL_RANK=1", "FAKE_NCCL_WRONG=" + strconv.Itoa(n)}, strings.Fields("-np 2 -b 1K -e 1K -n 1 -w 0 -G 1 -q")...)
		if status == 0 {
			continue
		}
		require.Equal(t, 1, status)
		require.Contains(t, out, "FAILED", errs)
		require.Contains(t, errs, "rank 1: element 0 is ")
		found = true
	}
	require.True(t, found)
}

// A call that hangs on the device ends at -T: its memory, and its graph, are not waited for.
func TestDeviceHangs(t *testing.T) {
	run := onFake(t)
	for _, args := range []string{"-G 3", "-n 30"} {
		start := time.Now()
		_, errs, status := run([]string{"FAKE_NCCL_RANK=1", "FAKE_NCCL_HANG=8"}, strings.Fields("-np 2 -b 1K -e 1K -T 2 "+args)...)
		require.Equal(t, 1, status, errs)
		require.Contains(t, errs, "longer than -T 2s")
		require.Less(t, time.Since(start), 40*time.Second)
	}
}

// Buffers on a device are registered, and hints reach the library; what neither takes is refused before a rank starts, or by its
// name.
func TestRegisteredAndHinted(t *testing.T) {
	run := onFake(t)
	for _, args := range []string{"-op all -R 1", "-op allreduce,reduce,reducescatter -o mulsum,sum -d float,half,bfloat16,double -G 2", "-op all -R 2", "-R 2 -rotate 2 -split mod:2 -t 2 -np 1", "-R 2 -u 3", "-R 1 -rotate 2 -split mod:2 -t 2 -np 1", "-hints max-ctas=8,cta-policy=efficiency,net=Socket -v"} {
		out, errs, status := run(nil, strings.Fields("-np 2 -backend nccl -b 1K -e 2K -n 3 "+args)...)
		require.Zero(t, status, "%s: %s%s", args, out, errs)
		require.Contains(t, out, "# Out of bounds values : 0 OK")
		require.Equal(t, strings.Contains(args, "-v"), strings.Contains(out, "# Hints: max-ctas=8,cta-policy=efficiency,net=Socket\n"))
	}
	out, errs, status := run(nil, strings.Fields("-np 2 -backend nccl -b 1K -e 1K -n 1 -M 1")...)
	require.Zero(t, status, errs)
	require.Regexp(t, `# Memory .* : at most 2\.0 MiB of a device for the library\n`, out)
	for args, want := range map[string]string{
		"-backend cpu -hints net=IB":       "-hints net=IB: the cpu engine takes none; name the backend of your device with -backend, or leave it out",
		"-backend nccl -mem managed -R 1":  "-R 1 or 2 -mem managed: only device or host memory can be registered",
		"-backend cpu -R 2":                "-R 2 -mem host: windows are made of device memory",
		"-backend nccl -hints max-ctas=65": "max channels",
		"-backend mpi -hints net=IB":       "-backend mpi",
	} {
		out, errs, status := run(nil, strings.Fields("-np 2 -b 1K -e 1K "+args)...)
		require.NotZero(t, status, args)
		require.Contains(t, errs, want, out)
	}
	for _, env := range [][]string{{"FAKE_NCCL_WINDOW=none"}, {"FAKE_NCCL_WINDOW=none", "FAKE_NCCL_RANK=1"}} {
		_, errs, status := run(env, strings.Fields("-np 2 -b 1K -e 1K -backend nccl -R 2")...)
		require.NotZero(t, status)
		require.Contains(t, errs, "-R 2: ")
		require.Contains(t, errs, "makes no symmetric window on rank")
	}
	_, errs, status = run([]string{"FAKE_NCCL_VERSION=22605"}, strings.Fields("-np 2 -b 1K -e 1K -backend nccl -hints cta-policy=zero")...)
	require.NotZero(t, status)
	require.Contains(t, errs, "Options.Hints: NCCL 2.26.5 (FAKE) has no CTAPolicy; that needs NCCL 2.27.0")
}
