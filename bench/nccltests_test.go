package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// theirs runs bench by a link that is called as one of nccl-tests' programs.
func theirs(t *testing.T, env []string, name string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(program, link); err != nil {
		link += ".exe" // Windows: links take a privilege, and programs a suffix
		require.NoError(t, os.Link(program, link))
	}
	return started(t, env, link, args...)
}

// By a name of nccl-tests bench is that program, in the ranks that it starts as well.
func TestNames(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		rows       int
		want       []string
	}{
		{"all_reduce_perf", "", 1, []string{"# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n"}},
		{"all_reduce_perf", "-b 1 -e 1M -f 2 -g 2 -c 0", 21, []string{"# ranks: 2 ", "# nThread 1 nGpus 2 ", "     N/A"}},
		{"alltoall_perf", "--minbytes=1K --max 1K -t 2 -g 2", 1, []string{"# ranks: 4 ", "# nThread 2 nGpus 2 ", "        1024            64     float    none      -1"}},
		{"reduce_scatter_perf_mpi", "-b 1K -e 1K -g 2 -o max", 1, []string{"     float     max      -1"}},
		{"sendrecv_perf", "-b 1K -e 1K --np 2", 1, []string{"# ranks: 2  processes: 2 (started here)", "        1024           256     float    none      -1"}},
		{"broadcast_perf", "-b 8 -e 8 -g 3 -r all", 3, nil},
	} {
		t.Run(tc.name+" "+tc.args, func(t *testing.T) {
			out, errs, status := theirs(t, nil, tc.name, strings.Fields(tc.args)...)
			require.Zero(t, status, "%s%s", out, errs)
			require.Empty(t, errs)
			require.Len(t, row.FindAllString(out, -1), tc.rows, out)
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
		})
	}
	_, errs, status := theirs(t, nil, "hypercube_perf")
	require.Equal(t, 2, status)
	require.Contains(t, errs, "bench: hypercube_perf: bench is no program of that name; by a link it is all_reduce_perf ")
	out, errs, status := theirs(t, nil, "gather_perf", "-h")
	require.Zero(t, status, errs)
	require.Contains(t, out, "USAGE: gather_perf ")
}

// NCCL_TESTS_MIN_BW is compared as nccl-tests does: 0.9 of it is enough, and less is exit 1.
func TestLeastAverage(t *testing.T) {
	out, errs, status := theirs(t, []string{"NCCL_TESTS_MIN_BW=1e9"}, "all_reduce_perf", "-b", "64", "-e", "64", "-g", "2")
	require.Equal(t, 1, status)
	require.Empty(t, errs)
	require.Regexp(t, `(?m)^# Avg bus bandwidth    : \S+ FAILED$`, out)
	out, _, status = theirs(t, []string{"NCCL_TESTS_MIN_BW=1e-9"}, "all_reduce_perf", "-b", "64", "-e", "64", "-g", "2")
	require.Zero(t, status)
	require.Regexp(t, `(?m)^# Avg bus bandwidth    : \S+ OK$`, out)
}
