//go:build xla && nccl && cgo && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/test/fake"
)

// What is wrong on rank 1 alone is told by both ranks, and nobody waits.
func TestBadOnOneRank(t *testing.T) {
	good := xlatest.Path(t)
	text := filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	other := filepath.Join(t.TempDir(), "other.so") // of a later design
	out, err := exec.Command("cc", "-std=gnu11", "-shared", "-fPIC", "-DMAJOR=1", "-o", other, "../../xla/testdata/plugin.c").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, tc := range []struct{ name, args, want, told string }{
		{"a wrong path", "-plugin /nonexistent/plugin.so", "/nonexistent/plugin.so: cannot open shared object file", "xla: the PJRT plugin cannot be loaded: /nonexistent/plugin.so"},
		{"no library", "-plugin " + text, "file too short", "xla: the PJRT plugin cannot be loaded: "},
		{"another version", "-plugin " + other, "its PJRT is 1.69 with 120 functions; 0.70 with 97 or newer is needed", "xla: open: " + other[:20]},
		{"no such option", "-options no_such_option=1", "no_such_option", "xla: client: "},
		{"no data", "-data /nonexistent/text", "/nonexistent/text: no such file", "open /nonexistent/text: no such file"},
		{"too much", "-heads 64 -context 65536 -rows 512", "ut of memory allocating ", "xla: "}, // scores of 280 TB
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				args := []string{"-preset", "tiny", "-layers", "1", "-steps", "2", "-log", "1", "-plugin", good}
				want := "aborted by rank 1: "
				if c.Rank() == 1 {
					args, want = append(args, strings.Fields(tc.args)...), tc.want
				}
				_, _, err := trained(t, c, "", args...)
				require.ErrorContains(t, err, want)
				if c.Rank() == 0 {
					require.ErrorContains(t, err, tc.told)
				}
			})
		})
	}
}

// withFake reports whether this process has the fake runtime. If not it runs this test in one that has: a process looks for a runtime
// once.
func withFake(t *testing.T) bool {
	t.Helper()
	const child = "GPT2_TEST_FAKE"
	if os.Getenv(child) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), fake.Env(fake.Library(t))...), "FAKE_NCCL_SHARED_DEVICES=1", child+"=1", "GOCCL_XLA_PLUGIN="+xlatest.Path(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// Two ranks on one GPU need options, without which the first would take three quarters of the memory.
func TestSharedGPU(t *testing.T) {
	if !withFake(t) {
		return
	}
	plugin := os.Getenv("GOCCL_XLA_PLUGIN")
	device := 0
	for _, tc := range []struct {
		name    string
		args    [2]string
		refused bool
		want    string
	}{
		{"nothing", [2]string{}, true, "give all ranks of it the options preallocate=false,memory_fraction=0.4, or rank 0 takes"},
		{"one of two options", [2]string{"-options preallocate=false", "-options preallocate=false"}, true, "give all ranks of it the options preallocate=false,memory_fraction=0.4, or rank 0 takes"},
		{"one of two ranks", [2]string{"-options preallocate=false,memory_fraction=0.4", ""}, true, "memory_fraction=0.4, or rank 1 takes what the other needs"},
		{"as it should be", [2]string{"-options preallocate=false,memory_fraction=0.4", "-options preallocate=false,memory_fraction=0.4"},
			false, "xla: client: "}, // the plugin for CPUs has no such options: so far it came
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				args := append([]string{"-preset", "tiny", "-plugin", plugin, "-backend", "nccl", "-device", "0"}, strings.Fields(tc.args[c.Rank()])...)
				_, _, err := trained(t, c, "", args...)
				require.Equal(t, tc.refused, strings.Contains(err.Error(), "ranks 0 and 1 share the GPU "), "%v", err)
				if !strings.Contains(err.Error(), "aborted by rank ") { // which has the start of the other's text
					require.ErrorContains(t, err, tc.want)
				}
			}, ccltest.With(ccl.Options{Backend: "nccl", Device: &device}))
		})
	}
}
