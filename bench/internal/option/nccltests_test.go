package option

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestProgram(t *testing.T) {
	for argv0, want := range map[string]string{
		"/opt/nccl-tests/build/all_reduce_perf": "all_reduce_perf",
		"all_reduce_perf_mpi":                   "all_reduce_perf_mpi",
		"./sendrecv_perf.exe":                   "sendrecv_perf",
		"alltoallv_perf":                        "alltoallv_perf",
	} {
		name, theirs, err := Program(argv0)
		require.NoError(t, err)
		require.True(t, theirs, argv0)
		require.Equal(t, want, name)
	}
	for _, argv0 := range []string{"bench", "/tmp/bench-old", "goccl_performance", "bench.test", "perf"} {
		_, theirs, err := Program(argv0)
		require.NoError(t, err)
		require.False(t, theirs, argv0)
	}
	for _, argv0 := range []string{"hypercube_perf", "allreduce_perf", "all_reduce2_perf_mpi"} {
		_, _, err := Program(argv0)
		require.ErrorContains(t, err, "bench is no program of that name; by a link it is all_reduce_perf all_gather_perf ", argv0)
	}
}

// theirDefaults are what a command line of nccl-tests without options means.
func theirDefaults() Options {
	o := Default()
	o.As, o.ItersGiven, o.NP, o.Launcher = "all_reduce_perf", true, 1, "local"
	o.Min, o.Max, o.Step, o.Factor = 32<<20, 32<<20, 1<<20, 0
	return o
}

func TestParseAs(t *testing.T) {
	all := func(o *Options) {}
	for _, tc := range []struct {
		args string
		set  func(o *Options)
	}{
		{"", all},
		{"-b8 -e 128M -f 2 -g 8", func(o *Options) { o.Min, o.Max, o.Factor, o.Step, o.Threads, o.PerThread = 8, 128<<20, 2, 0, 8, 8 }},
		{"--minbytes=8 --maxbytes 1.5G --stepfactor=4", func(o *Options) { o.Min, o.Max, o.Factor, o.Step = 8, 3<<29, 4, 0 }},
		{"--min 8 --max=64MB --ste 1", nil},
		{"--min 8 --max=8 --stepb 1", func(o *Options) { o.Min, o.Max, o.Step = 8, 8, 1 }},
		{"-b 8 -e 8 -i 0", func(o *Options) { o.Min, o.Max, o.Step = 8, 8, 1 }},
		{"-b 8 -e 64 -i 0 -f 2", func(o *Options) { o.Min, o.Max, o.Step, o.Factor = 8, 64, 0, 2 }},
		{"-f 1", all},
		{"--nthreads 2 --ngpus 3", func(o *Options) { o.Threads, o.PerThread = 6, 3 }},
		{"--iters 0x10 --warmup 010 --agg_iters=2 --run_cycles 0", func(o *Options) { o.Iters, o.Warmup, o.Agg, o.Cycles = 16, 8, 2, 0 }},
		{"-n100 -w5 -m 3 -N 2", func(o *Options) { o.Iters, o.Warmup, o.Agg, o.Cycles = 100, 5, 3, 2 }},
		{"--op max --datatype double --root all", func(o *Options) {
			o.Ops, o.Types, o.Root = []ccl.Op{ccl.Max}, []ccl.Type{ccl.TypeFloat64}, AllRoots
		}},
		{"-o mulsum", func(o *Options) { o.Ops = []ccl.Op{MulSum} }},
		{"-o avg -d half -r 0", func(o *Options) { o.Ops, o.Types = []ccl.Op{ccl.Avg}, []ccl.Type{ccl.TypeFloat16} }},
		{"-c 0 -z 1 -T 30 -a 3", func(o *Options) {
			o.Check, o.Blocking, o.BlockingGiven, o.Timeout, o.Average = 0, BarrierEach, true, 30e9, Most
		}},
		{"-z 0 -G 0 -T 0", func(o *Options) { o.Blocking = WaitAtEnd }},
		{"--check=0 --blocking=0 --timeout=0 --average=1", func(o *Options) { o.Check, o.Blocking = 0, WaitAtEnd }},
		{"-p 0 -y 0 -x 0 -D 0 -C 0 -V 16", all},
		{"-p1 --parallel_init 1 --stream_null 0 --report_cputime=0 --cta_policy 0 --device_imp 0 --device_cta 8", all},
		{"-I 1 -K 2 -S 1 -M 1 -u 3 -R 1", func(o *Options) {
			o.Iterations, o.Skip, o.Stamp, o.Memory, o.Misalign, o.Registered = true, 2, true, true, 3, true
		}},
		{"-R 2", func(o *Options) { o.Registered, o.Windows = true, true }},
		{"-x 1", func(o *Options) { o.Hints.CTAPolicy = ccl.CTAPolicyEfficiency }},
		{"--cta_policy=2", func(o *Options) { o.Hints.CTAPolicy = ccl.CTAPolicyZero }},
		{"-I 0 -S 0 -M 0 --mem 0", nil},
		{"-I 0 -S 0 --memory 0 --local_register 0 --unalign 0", all},
		{"--per_iter_t 1 --per_iter_skip 1 --report_timestamps 1 --memory_ 1", func(o *Options) {
			o.Iterations, o.Skip, o.Stamp, o.Memory = true, 1, true, true
		}},
		{"--backend cpu --split mod:2 --html r.html -b 8 -e 8", func(o *Options) {
			o.BackendGiven, o.Split, o.HTML, o.Min, o.Max = true, Split{"mod", 2}, "r.html", 8, 8
		}},
		{"--np 2 --", func(o *Options) { o.NP, o.NPGiven = 2, true }},
		{"-h", func(o *Options) { o.Help = true }},
		{"--help", func(o *Options) { o.Help = true }},
		{"--he", func(o *Options) { o.Help = true }},
	} {
		got, err := ParseAs("all_reduce_perf", strings.Fields(tc.args), func(string) string { return "" })
		if tc.set == nil {
			require.Error(t, err, tc.args)
			continue
		}
		require.NoError(t, err, tc.args)
		want := theirDefaults()
		tc.set(&want)
		require.Equal(t, want, got, tc.args)
	}
	o, err := ParseAs("gather_perf", []string{"-d", "all"}, os.Getenv)
	require.NoError(t, err)
	require.Equal(t, []string{"gather"}, o.Collectives)
	require.Len(t, o.Types, 12)
	require.NotContains(t, o.Types, ccl.TypeInt16)
}

// What asks for something that is not here is refused, and says why.
func TestParseAsRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-y 1":           "-y 1: calls always use a stream of their own, never the null stream; give 0, or leave it out",
		"-x 3":           "-x 3: it must be 0 (default), 1 (efficiency) or 2 (zero)",
		"-D 1":           "no engine calls from inside a kernel",
		"-C 1":           "bench times whole calls",
		"-p 2":           "give 0 or 1",
		"--step 4":       "--step: that may be --stepbytes or --stepfactor; write more of it",
		"--n 4":          "--nthreads or --ngpus",
		"--itres 4":      "--itres: no such option; did you mean --iters? (-h lists them)",
		"-Q 1":           "-Q: no such option (-h lists them)",
		"-b":             "-b needs a value",
		"-b 8x":          "-b 8x: a size is a number",
		"-b -8":          "-b -8: a size is a number",
		"-b 1e300":       "larger than this machine's integers",
		"-b 64M":         "-b 64M -e 32M: the smallest size is larger than the largest; both default to 32M",
		"-b 8 -i 0":      "the sizes would never grow",
		"-n 5x":          "-n 5x: not a whole number",
		"-I 2":           "-I 2: it must be 0 or 1",
		"-g 0":           "-g 0: it must be at least 1",
		"-t 64 -g 100":   "that makes 6400 ranks",
		"-np 2":          "-n p: not a whole number",
		"all_reduce":     "all_reduce: an argument without an option",
		"-- x":           "--: an argument without an option",
		"--quiet":        "--quiet: no such option",
		"-G 2 -z 1":      "leave one out",
		"-t 99999999999": "-t 99999999999: at most 4096 ranks",
		"-g 99999999999": "-g 99999999999: at most 4096 ranks",
	} {
		_, err := ParseAs("all_reduce_perf", strings.Fields(args), func(string) string { return "" })
		require.ErrorContains(t, err, want, args)
		require.NotContains(t, err.Error(), "\n")
	}
}

func FuzzParseAs(f *testing.F) {
	f.Add("-b8 --maxbytes=1.5G --stepf 2 -g 2 -c 0")
	f.Add("--n 4 -J x -- y")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := ParseAs("all_reduce_perf", strings.Fields(line), func(string) string { return "" })
		if err == nil && !o.Help && (o.Min > o.Max || o.Threads < 1 || len(o.Sizes(4)) == 0) {
			t.Fatalf("%q makes %+v", line, o)
		}
	})
}

func TestVariables(t *testing.T) {
	for _, tc := range []struct {
		env, args string
		set       func(o *Options)
		want      string
	}{
		{"NCCL_TESTS_MIN_BW=10", "", func(o *Options) { o.MinAverage = 9 }, ""},
		{"NCCL_TESTS_MIN_BW=x", "", nil, "NCCL_TESTS_MIN_BW=x: it must be a number of GB/s"},
		{"NCCL_TESTS_DEVICE=2", "-g 2", func(o *Options) { o.Threads, o.PerThread, o.Devices = 2, 2, []int{2, 3} }, ""},
		{"NCCL_TESTS_DEVICE=-1", "", nil, "it must be a device number"},
		{"NCCL_TESTS_SPLIT=MOD 8", "", func(o *Options) { o.Split = Split{"mod", 8} }, ""},
		{"NCCL_TESTS_SPLIT=/4", "", func(o *Options) { o.Split = Split{"div", 4} }, ""},
		{"NCCL_TESTS_SPLIT=AND 0x6", "", func(o *Options) { o.Split = Split{"mask", 6} }, ""},
		{"NCCL_TESTS_SPLIT=OR 1", "", nil, "groups are MOD, DIV or AND and a number"},
		{"NCCL_TESTS_SPLIT=MOD", "", nil, "it has no group number"},
		{"NCCL_TESTS_SPLIT_MASK=0x10", "", func(o *Options) { o.Split = Split{"mask", 16} }, ""},
		{"NCCL_TESTS_SPLIT_MASK=0", "", func(*Options) {}, ""},
		{"NCCL_TESTS_SPLIT_MASK=7", "-t 2", nil, "nccl-tests splits processes, and bench splits ranks"},
	} {
		name, value, _ := strings.Cut(tc.env, "=")
		got, err := ParseAs("all_reduce_perf", strings.Fields(tc.args), func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if tc.set == nil {
			require.ErrorContains(t, err, tc.want)
			continue
		}
		require.NoError(t, err, tc.env)
		want := theirDefaults()
		tc.set(&want)
		require.Equal(t, want, got, tc.env)
	}
}

// nccl-tests never overwrites a file of results.
func TestFreeName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	for _, want := range []string{file, file + ".0", file + ".1"} {
		o, err := ParseAs("all_reduce_perf", []string{"-J" + file}, os.Getenv)
		require.NoError(t, err)
		require.Equal(t, want, o.JSON)
		require.NoError(t, os.WriteFile(want, nil, 0o600))
	}
	o, err := ParseAs("all_reduce_perf", []string{"-J", os.DevNull}, os.Getenv)
	require.NoError(t, err)
	require.Equal(t, os.DevNull, o.JSON)
}

// Plain bench keeps its own flags, and takes nccl-tests' long names that are not its own.
func TestLongNames(t *testing.T) {
	got := parsed(t, strings.Fields("--minbytes 8 -maxbytes=64 --nthreads 2 --iters 5 --op allgather -p 0 --stream_null 0 -V 16 --memory 1"))
	want := Default()
	want.Min, want.Max, want.Threads, want.NP, want.Iters, want.ItersGiven, want.Memory = 8, 64, 2, 1, 5, true, true
	want.Collectives = []string{"allgather"}
	require.Equal(t, want, got)
	for args, text := range map[string]string{
		"-g 2":      "-g: of nccl-tests' flags, this has no meaning here: one rank has one device",
		"--ngpus 2": "-ngpus: of nccl-tests' flags",
		"-y 1":      "-y 1: calls always use a stream of their own",
		"--min 8":   "no such flag", // prefixes are getopt's
	} {
		_, err := Parse(strings.Fields(args))
		require.ErrorContains(t, err, text)
	}
	require.Contains(t, HelpAs("gather_perf"), "USAGE: gather_perf [options]\n")
	require.Contains(t, HelpAs("gather_perf"), "\n  -t,--nthreads                threads per process, with -g ranks each (1)\n")
	require.Contains(t, HelpAs("gather_perf"), "\n  -w,--warmup_iters            warm-up iterations before each size (1)")
}
