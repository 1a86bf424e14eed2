//go:build (nccl || rccl) && cgo && linux

package onegpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/test/fake"
)

// TestBundle builds what make gpu-bundle builds and rehearses it on the fake library, on one device and on two: every part runs,
// and what is wrong is found.
func TestBundle(t *testing.T) {
	switch {
	case real():
		t.Skip("hardware: this is the bundle")
	case testing.Short():
		t.Skip("-short: six programs are built")
	}
	dir := filepath.Join(t.TempDir(), "bundle")
	cache.Whole()
	build := exec.CommandContext(t.Context(), "../bundle.sh", dir)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	run := func(t *testing.T, env ...string) (out, results string, err error) {
		results = filepath.Join(t.TempDir(), "results")
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "run.sh"), results)
		cmd.Env = append(append(os.Environ(), fake.Env(fake.Library(t))...), "CORES=2", "MAX=256", "TYPES_MAX=64", "SIZES=8 65536",
			"FLAGS=-n 1 -w 0", "ROUNDS=1", "ITERS=200", "BUDGET=-stretches 16 -rounds 2")
		cmd.Env = append(cmd.Env, env...)
		b, err := cmd.CombinedOutput()
		if err != nil {
			files, _ := filepath.Glob(filepath.Join(results, "*.txt"))
			for _, f := range files {
				text, _ := os.ReadFile(f)
				t.Logf("%s:\n%s", filepath.Base(f), text)
			}
		}
		return string(b), results, err
	}
	parts := []string{"all-1", "all-2", "registered", "graph", "types", "budget", "budget-one-core", "onegpu", "cpu-2", "compare with 1 ranks", "compare with 2 ranks"}
	for _, tc := range []struct {
		name string
		env  []string
		how  string
		want []string
	}{
		{"host ids", []string{"DEVICES=1", "FAKE_DEVICES=1", "FAKE_NCCL_VERSION=22907"}, "two ranks: NCCL_HOSTID\n",
			[]string{"NOT RUN threads: NCCL 22907 takes two ranks on one GPU only from two processes\n"}},
		{"multi-rank", []string{"DEVICES=1", "FAKE_DEVICES=1", "FAKE_NCCL_VERSION=23003", "ONLY=[at]*"}, "two ranks: NCCL_MULTI_RANK_GPU_ENABLE\n", []string{"ok      threads\n"}},
		{"two devices", []string{"DEVICES=2", "FAKE_DEVICES=2", "ONLY=[atw]*"}, "two ranks: a device each\n", []string{"ok      threads\n", "ok      windows\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, results, err := run(t, tc.env...)
			require.NoError(t, err, out)
			require.NotContains(t, out, "FAILED")
			whole := !strings.Contains(strings.Join(tc.env, " "), "ONLY")
			for _, name := range parts {
				if whole || strings.ContainsAny(name[:1], "at") {
					require.Contains(t, out, "ok      "+name+"\n")
				}
			}
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
			if whole {
				require.Contains(t, out, "NOT RUN cpu-16: 2 cores\n")
				require.Contains(t, out, "NOT RUN torch: no python3 with torch and a device\n")
				require.Contains(t, out, "\n1 ranks, 8 bytes: C ")
				require.Contains(t, out, "\n2 ranks, 65536 bytes: C ")
			}
			machine, err := os.ReadFile(filepath.Join(results, "machine.txt"))
			require.NoError(t, err)
			require.Contains(t, string(machine), tc.how)
			table, err := os.ReadFile(filepath.Join(results, "all-2.txt"))
			require.NoError(t, err)
			require.Contains(t, string(table), "# Out of bounds values : 0 OK")
			require.Contains(t, string(table), "(FAKE)")
		})
	}
	t.Run("wrong values", func(t *testing.T) {
		out, _, err := run(t, "DEVICES=1", "FAKE_DEVICES=1", "FAKE_NCCL_WRONG=3", "ONLY=all-2")
		require.Error(t, err)
		require.Regexp(t, `^FAILED  all-2 \(exit 1\): `, out)
	})
}
