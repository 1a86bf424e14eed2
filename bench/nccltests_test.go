package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		// As FlagPerf, superbenchmark and CloudAI call them.
		{"all_reduce_perf", "-t 1 -g 2 -b 2M -e 4M -d float -o sum", 3, []string{"# ranks: 2 "}},
		{"all_gather_perf", "-b 8 -e 64K -f 2 -g 4 -c 0 -n 20 -w 5 -G 0 -d float", 14, []string{"# ranks: 4 "}},
		{"sendrecv_perf", "-b 1m -e 1m -f 2 -g 2", 1, nil},
		{"reduce_scatter_perf", "--nthreads 1 --ngpus 2 --minbytes 32K --maxbytes 64K --stepbytes 32K --op sum --datatype float --root 0 --iters 20 " +
			"--warmup_iters 5 --agg_iters 1 --average 1 --parallel_init 0 --check 1 --blocking 0 --cudagraph 0", 2, []string{"# ranks: 2 "}},
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

// What people's programs read in the output of nccl-tests is as in testdata/nccl-tests.txt: the table, whose figures are
// 0.00 there, and the fields of the file with their types. The readers of these programs have read this output:
// superbenchmark, awsome-distributed-training, CloudAI, FlagPerf, azurehpc-health-checks, cluster-health-monitor,
// nebius_cxcli, and analyze_perf_json.py of nccl-tests.
func TestOutputReaders(t *testing.T) {
	golden, err := os.ReadFile("testdata/nccl-tests.txt")
	require.NoError(t, err)
	table, file, _ := strings.Cut(string(golden), "\n\n")
	operations := []string{"all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter", "sendrecv"}
	if testing.Short() {
		operations = operations[:2]
	}
	for _, operation := range operations {
		for _, ranks := range []int{2, 4} {
			name := filepath.Join(t.TempDir(), "out.json")
			out, errs, status := theirs(t, nil, operation+"_perf", "-b", "64", "-e", "16K", "-f", "16", "-g", strconv.Itoa(ranks), "-n", "5", "-I", "0", "-J", name, "--overlap")
			require.Zero(t, status, errs)
			require.Equal(t, 3, strings.Count(out, ", overlap: alone "), "a remark on each row, below the table")
			readable(t, out, ranks)
			if operation == "all_reduce" {
				require.Contains(t, regexp.MustCompile(` +\d+\.\d+`).ReplaceAllString(out, " 0.00"), table)
			}
			require.Equal(t, file, fieldsOf(t, name, ranks), operation)
		}
	}
}

// readable requires what must be in any table: devices, rows alone between the heading and the footer, an average.
func readable(t *testing.T, out string, ranks int) {
	t.Helper()
	require.Len(t, regexp.MustCompile(`(?m)^#  Rank +\d+ Group +\d+ Pid +\d+ on +[\w.-]+ device +\d+ \[`).FindAllString(out, -1), ranks)
	require.Regexp(t, `(?m)^#        \(B\)    \(elements\).*\n( +\d+ +\d+ +\w+ +\w+ +-?\d+( +[\d.]+ +[\d.]+ +[\d.]+ +0){2} *\n)+# Out of bounds values : 0 OK\n# Avg bus bandwidth    : [\d.]+ *\n`, out)
	require.NotContains(t, strings.Split(out, "# Avg bus")[0], "bandwidth", "azurehpc-health-checks takes the first")
}

// fieldsOf are the fields of a file with their types, without those that nccl-tests has not. Of the times of iterations
// each is that of the slowest rank.
func fieldsOf(t *testing.T, name string, ranks int) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var all any
	require.NoError(t, json.Unmarshal(text, &all))
	seen := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				if name != "goccl" {
					walk(path+"."+name, x)
				}
			}
			if times, has := v["times_us"].([]any); has {
				of := v["per_process_max_times_us"].([]any)
				require.Len(t, of, ranks)
				for i, slowest := range times {
					require.Equal(t, slowest, slices.MaxFunc(of, func(a, b any) int {
						return cmp.Compare(a.([]any)[i].(float64), b.([]any)[i].(float64))
					}).([]any)[i])
				}
			}
		case []any:
			seen[path+" list\n"] = true
			for _, x := range v {
				walk(path+"[]", x)
			}
		default:
			if path != ".env[]" { // only what is set
				seen[fmt.Sprintf("%s %T\n", path, v)] = true
			}
		}
	}
	walk("", all)
	return strings.Join(slices.Sorted(maps.Keys(seen)), "")
}

// Under mpirun each process has its ranks, and rank 0 alone writes.
func TestNamesUnderMPIRun(t *testing.T) {
	found := false
	for _, mpirun := range []string{"mpirun.openmpi --oversubscribe --bind-to none", "mpiexec.mpich"} {
		launcher := strings.Fields(mpirun + " -np 2")
		if _, err := exec.LookPath(launcher[0]); err != nil {
			continue
		}
		found = true
		for args, ranks := range map[string]int{
			"-b 8 -e 1K -f 2 -g 1 -c 1":                                 2, // Azure
			"--minbytes=8 --maxbytes 1K --stepfactor 2 --ngpus=2 -n 10": 4, // long options, two ranks each
		} {
			link := filepath.Join(t.TempDir(), "all_reduce_perf")
			require.NoError(t, os.Symlink(program, link))
			name := filepath.Join(t.TempDir(), "out.json")
			call := slices.Concat(launcher[1:], []string{link}, strings.Fields(args), []string{"-J", name})
			out, errs, status := started(t, []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}, launcher[0], call...)
			require.Zero(t, status, errs)
			readable(t, out, ranks)
			require.Len(t, row.FindAllString(out, -1), 8)
			fieldsOf(t, name, ranks)
		}
	}
	if !found {
		t.Skip("no mpirun here (Debian: apt-get install openmpi-bin mpich)")
	}
}
