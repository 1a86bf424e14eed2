package outputreaders

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

// dir has bench by nccl-tests' names, as make nccl-tests makes it.
var dir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if runtime.GOOS == "windows" {
		return 0 // links take a privilege there; bench's own tests run it by these names
	}
	var err error
	if dir, err = os.MkdirTemp("", "clients-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	cache.Whole()
	made := exec.Command("make", "-C", "../..", "nccl-tests", "DIR="+dir)
	made.Env = append(os.Environ(), "MAKEFLAGS=") // of the make that runs this test, perhaps
	if b, err := made.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "make nccl-tests: %v\n%s", err, b)
		return 1
	}
	return m.Run()
}

// operations are those of nccl-tests' programs that are here.
var operations = []string{"all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter", "sendrecv"}

var launchers = regexp.MustCompile(`^(GOCCL_|PMI|PALS_|OMPI_|SLURM_|RANK=|WORLD_SIZE=|LOCAL_|MASTER_|TORCHELASTIC_|NCCL_TESTS_)`)

// call runs a command line, and gives what it writes to standard output.
func call(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	for _, e := range os.Environ() {
		if !launchers.MatchString(e) {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s: %s%s", strings.Join(args, " "), &out, &errs)
	return out.String()
}

func program(operation string) string { return filepath.Join(dir, operation+"_perf") }

// Every operation on 2 and 4 ranks, with a remark on each row: all programs read it, and read the same.
func TestEveryOperation(t *testing.T) {
	some := operations
	if testing.Short() {
		some = some[:2]
	}
	for _, operation := range some {
		for _, ranks := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s/%d", operation, ranks), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "out.json")
				out := call(t, program(operation), "-b", "64", "-e", "16K", "-f", "16", "-g", strconv.Itoa(ranks), "-n", "5", "-I", "0", "-J", file, "--overlap")
				require.Equal(t, 3, strings.Count(out, ", overlap: alone "), "a remark on each row")
				require.Contains(t, out, "# Collective test starting: "+operation+"_perf\n")
				require.Contains(t, out, "# Collective test concluded: "+operation+"_perf\n")
				agree(t, out, file, 3, ranks)
			})
		}
	}
}

// agree has all programs read what a run of so many rows has written, and compares what they have found.
func agree(t *testing.T, out, file string, rows, ranks int) {
	t.Helper()
	require.NoError(t, RowsAlone(out))

	amazon, average, err := Amazon(out)
	require.NoError(t, err)
	require.Len(t, amazon, rows)

	outOfPlace, err := SuperBench(out, false)
	require.NoError(t, err)
	inPlace, err := SuperBench(out, true)
	require.NoError(t, err)
	cloud, known, devices, err := CloudAI(out)
	require.NoError(t, err)
	require.Equal(t, ranks, known)
	on := 0
	for _, n := range devices {
		on += n
	}
	require.Equal(t, ranks, on)
	for i, r := range amazon {
		require.Equal(t, Row{Size: r.Size, Time: r.Time, AlgBW: r.AlgBW, BusBW: r.BusBW}, outOfPlace[i])
		require.Equal(t, Row{Size: r.Size, Time: r.InTime, AlgBW: r.InAlgBW, BusBW: r.InBusBW}, inPlace[i])
		require.Equal(t, Row{Size: r.Size, Time: r.Time, AlgBW: r.AlgBW, BusBW: r.BusBW, InTime: r.InTime, InAlgBW: r.InAlgBW, InBusBW: r.InBusBW}, cloud[i])
		require.Zero(t, r.Wrong+r.InWrong)
		require.Positive(t, r.Time)
	}

	flag, err := FlagPerf(out)
	require.NoError(t, err)
	azure, err := AzureNHC(out)
	require.NoError(t, err)
	require.Equal(t, flag, azure)
	require.InEpsilon(t, flag, average, 1e-9)
	if file == "" {
		return
	}

	b, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := Strict(b)
	require.NoError(t, err)
	require.Equal(t, 3, *f.Version)
	require.Len(t, *f.Results, rows)
	require.Len(t, *f.Config.Devices, ranks)
	require.Equal(t, "true", *f.OutOfBounds.OK)
	require.Equal(t, "unchecked", *f.Average.OK)
	for i, r := range *f.Results {
		require.Equal(t, amazon[i].Size, *r.Size)
		require.Equal(t, strconv.Itoa(amazon[i].Root), *r.Root)
		require.InDelta(t, amazon[i].BusBW, *r.Out.BusBW, 0.05+*r.Out.BusBW/100)
		require.Len(t, *r.OutIter.Times, *r.Iterations)
	}
	health, err := ClusterHealth(b)
	require.NoError(t, err)
	require.InEpsilon(t, flag, health, 1e-4)
	peak, size, err := Nebius(b)
	require.NoError(t, err)
	require.GreaterOrEqual(t, peak, health)
	require.Positive(t, size)
	processes, err := Analyze(b)
	require.NoError(t, err)
	require.Equal(t, ranks, processes)
}

// The command lines that these programs use.
func TestCommandLines(t *testing.T) {
	for _, tc := range []struct {
		args        string
		rows, ranks int
	}{
		{"all_reduce_perf -b 1 -e 1M -f 2 -g 2 -c 0", 21, 2},                           // SuperBench
		{"all_gather_perf -b 8 -e 64K -f 2 -g 4 -c 0 -n 20 -w 5 -G 0 -d float", 14, 4}, // SuperBench, later
		{"all_reduce_perf -t 1 -g 2 -b 2M -e 4M -d float -o sum", 3, 2},                // FlagPerf: steps of 1 MiB
		{"sendrecv_perf -b 1m -e 1m -f 2 -g 2", 1, 2},                                  // FlagPerf
		{"reduce_scatter_perf --nthreads 1 --ngpus 2 --minbytes 32K --maxbytes 64K --stepbytes 32K --op sum --datatype float --root 0 --iters 20 " +
			"--warmup_iters 5 --agg_iters 1 --average 1 --parallel_init 0 --check 1 --blocking 0 --cudagraph 0", 2, 2}, // CloudAI
	} {
		args := strings.Fields(tc.args)
		out := call(t, append([]string{filepath.Join(dir, args[0])}, args[1:]...)...)
		require.NoError(t, RowsAlone(out), tc.args)
		rows, ranks, _, err := CloudAI(out)
		require.NoError(t, err, tc.args)
		require.Len(t, rows, tc.rows, out)
		require.Equal(t, tc.ranks, ranks)
		_, err = SuperBench(out, false)
		require.NoError(t, err, tc.args)
		_, err = AzureNHC(out)
		require.NoError(t, err, tc.args)
	}
}

// Under mpirun each process has its ranks, and rank 0 alone writes.
func TestUnderMPIRun(t *testing.T) {
	found := false
	for _, mpirun := range []string{"mpirun.openmpi --oversubscribe --bind-to none", "mpiexec.mpich"} {
		launcher := strings.Fields(mpirun)
		path, err := exec.LookPath(launcher[0])
		if err != nil {
			continue
		}
		found = true
		for _, tc := range []struct {
			processes int
			args      string
			ranks     int
		}{
			{2, "-b 8 -e 1K -f 2 -g 1 -c 1", 2},                                 // Azure
			{2, "--minbytes=8 --maxbytes 1K --stepfactor 2 --ngpus=2 -n 10", 4}, // long options, two ranks each
		} {
			file := filepath.Join(t.TempDir(), "out.json")
			args := append([]string{path}, launcher[1:]...)
			args = append(args, "-np", strconv.Itoa(tc.processes), program("all_reduce"))
			out := call(t, append(append(args, strings.Fields(tc.args)...), "-J", file)...)
			agree(t, out, file, 8, tc.ranks)
		}
	}
	if !found {
		t.Skip("no mpirun here (Debian: apt-get install openmpi-bin mpich)")
	}
}

// What would break these programs is found.
func TestFaultsAreFound(t *testing.T) {
	out := call(t, program("all_reduce"), "-b", "64", "-e", "128", "-f", "2", "-g", "2", "-n", "2")
	row := regexp.MustCompile(`(?m)^ +64 .*\n`).FindString(out)
	require.NotEmpty(t, row)
	require.NoError(t, RowsAlone(out))
	require.Error(t, RowsAlone(strings.Replace(out, row, row+"# ^ a remark\n", 1)))
	broken := strings.Replace(out, row, strings.Replace(row, strings.Fields(row)[7], "n/a", 1), 1)
	_, err := SuperBench(broken, false)
	require.Error(t, err)
	_, _, _, err = CloudAI(broken)
	require.Error(t, err)
	rows, _, err := Amazon(broken)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = AzureNHC(strings.Replace(out, "0 OK", "1 FAILED", 1))
	require.Error(t, err)
	_, err = AzureNHC("# copy bandwidth\n" + out)
	require.Error(t, err)
	_, err = FlagPerf(out + out)
	require.Error(t, err)

	file := filepath.Join(t.TempDir(), "out.json")
	call(t, program("all_reduce"), "-b", "64", "-e", "64", "-g", "2", "-n", "2", "-J", file)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, change := range []struct{ from, to string }{
		{`"okay": "true"`, `"okay": true`}, {`"root": "-1"`, `"root": -1`}, {`"ngpus"`, `"gpus"`}, {`"actual_iterations"`, `"iters"`},
		{`"blocking_collectives": "false"`, `"blocking_collectives": false`}, {`"skipped_iterations"`, `"skipped"`}, {`"nccl_version"`, `"nccl"`},
	} {
		require.Contains(t, string(b), change.from)
		_, err := Strict(bytes.Replace(b, []byte(change.from), []byte(change.to), 1))
		require.Error(t, err, change.to)
	}
	_, err = Analyze(bytes.ReplaceAll(b, []byte(`"times_us": [`), []byte(`"times_us": [1e6,`)))
	require.Error(t, err)
}
