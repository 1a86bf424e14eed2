package option

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
)

func TestDefault(t *testing.T) {
	o, err := Parse(nil)
	require.NoError(t, err)
	require.Equal(t, Default(), o)
	require.Equal(t, []string{"allreduce"}, o.Collectives)
	require.Equal(t, 8, o.Min)
	require.Equal(t, 64<<20, o.Max)
	require.Len(t, o.Sizes(4), 24)
	require.GreaterOrEqual(t, o.NP, 2)
	require.LessOrEqual(t, o.NP, 8)
}

func TestParse(t *testing.T) {
	d := Default()
	for _, tc := range []struct {
		args string
		want func(o *Options)
	}{
		{"-b 1K -e 4K", func(o *Options) { o.Min, o.Max = 1024, 4096 }},
		{"-b1K -e=4K", func(o *Options) { o.Min, o.Max = 1024, 4096 }},
		{"-b 128M", func(o *Options) { o.Min, o.Max = 128<<20, 128<<20 }},
		{"-e 4", func(o *Options) { o.Min, o.Max = 4, 4 }},
		{"-i 1M", func(o *Options) { o.Step, o.Factor = 1<<20, 0 }},
		{"--op allgather,all_reduce", func(o *Options) { o.Collectives = []string{"allgather", "allreduce"} }},
		{"-op reduce,reduce", func(o *Options) { o.Collectives = []string{"reduce"} }},
		{"-op all", func(o *Options) { o.Collectives = coll.Names() }},
		{"-d half,float64", func(o *Options) { o.Types = []ccl.Type{ccl.TypeFloat16, ccl.TypeFloat64} }},
		{"-d all -o all", func(o *Options) { o.Types, o.Ops = types(), ops() }},
		{"-o MAX", func(o *Options) { o.Ops = []ccl.Op{ccl.Max} }},
		{"-r all", func(o *Options) { o.Root = AllRoots }},
		{"-n 5 -w 0 -m 3 -c 0 -a 3 -T 9", func(o *Options) {
			o.Iters, o.Warmup, o.Agg, o.Check, o.Average, o.Timeout = 5, 0, 3, 0, Most, 9*time.Second
			o.ItersGiven = true
		}},
		{"-T 1m30s", func(o *Options) { o.Timeout = 90 * time.Second }},
		{"-peer-timeout 2m", func(o *Options) { o.PeerTimeout = 2 * time.Minute }},
		{"-peer-timeout 0", func(o *Options) { o.PeerTimeout = -1 }},
		{"-T 5 -T 0", func(*Options) {}},
		{"-np 3 -t 2 -hosts 3", func(o *Options) { o.NP, o.Threads, o.Hosts, o.NPGiven = 3, 2, 3, true }},
		{"-t 4", func(o *Options) { o.NP, o.Threads = 1, 4 }},
		{"-I 1 -M 0 -S 1 -G 3", func(o *Options) { o.Iterations, o.Stamp, o.Graph = true, true, 3 }},
		{"-I1 -M=1", func(o *Options) { o.Iterations, o.Memory = true, true }},
		{"-v -J x.json", func(o *Options) { o.Verbose, o.JSON = true, "x.json" }},
		{"-v=false", func(o *Options) {}},
		{"-z 0 -N 0 -R 1 -u 3 -rotate 4 -flush=false", func(o *Options) {
			o.Blocking, o.BlockingGiven, o.Cycles, o.Registered, o.Misalign, o.Rotate = WaitAtEnd, true, 0, true, 3, 4
		}},
		{"-I -K 2 -S -M -min-busbw 1.5 -max-p99 3ms -ceiling 25", func(o *Options) {
			o.Iterations, o.Skip, o.Stamp, o.Memory, o.MinBusBW, o.MaxP99, o.Ceiling = true, 2, true, true, 1.5, 3*time.Millisecond, 25
		}},
		{"-backend cpu,cpu -csv a -html b", func(o *Options) { o.Backends, o.BackendGiven, o.CSV, o.HTML = []string{"cpu", "cpu"}, true, "a", "b" }},
		{"-nodes 2 -ppn=4 -hostfile hosts -launcher mpiexec.hydra -profile none -share /lustre -bind core -dry-run -q", func(o *Options) {
			o.Job = Job{Nodes: 2, PPN: 4, Hostfile: "hosts", Launcher: "mpiexec.hydra", Profile: "none", Share: "/lustre", Bind: "core", DryRun: true, Quiet: true}
		}},
		{"-n 8796093022208 -m 65536", func(o *Options) { o.Iters, o.ItersGiven, o.Agg = 8796093022208, true, 65536 }},
		{"-h", func(o *Options) { o.Help = true }},
		{"-h -zzz x", func(o *Options) { o.Help = true }},
		{"--help", func(o *Options) { o.Help = true }},
	} {
		got, err := Parse(strings.Fields(tc.args))
		require.NoError(t, err, tc.args)
		want := d
		tc.want(&want)
		require.Equal(t, want, got, tc.args)
	}
}

func TestParseRefuses(t *testing.T) {
	operations := strings.Join(coll.Names(), " ")
	for args, want := range map[string]string{
		"-op allredcue":                    "-op allredcue: no such operation; did you mean allreduce? There are " + operations,
		"-op zzz":                          "-op zzz: no such operation; there are " + operations,
		"-op allreduce,brodcast":           `-op allreduce,brodcast: "brodcast": no such operation; did you mean broadcast? There are ` + operations,
		"-d flaot":                         "-d flaot: no such type; did you mean float? There are int8 uint8 int16 uint16 int32 uint32 int64 uint64 half bfloat16 float double f8e4m3 f8e5m2",
		"-d fp8":                           "-d fp8: no such type; did you mean f8e4m3? There are int8 uint8 int16 uint16 int32 uint32 int64 uint64 half bfloat16 float double f8e4m3 f8e5m2",
		"-o sun":                           "-o sun: no such operator; did you mean sum? There are sum prod min max avg mulsum",
		"-o median":                        "-o median: no such operator; there are sum prod min max avg mulsum",
		"-backend cuda":                    "-backend cuda: no such backend; did you mean nccl? There are cpu nccl rccl oneccl mpi",
		"-backend quic":                    "-backend quic: no such backend; there are cpu nccl rccl oneccl mpi",
		"-max-p99 500":                     "-max-p99 500: say in which unit: 500us, 2ms",
		"-max-p99 1e-6":                    "-max-p99 1e-6: say in which unit: 500us, 2ms",
		"-max-p99 0us":                     "-max-p99 0us: it must be more than 0",
		"-J - -csv -":                      "-csv -: -J writes that file; give another name",
		"-b 12x":                           "-b 12x: a size is a number with an optional K, M or G, such as 64K",
		"-b 2K -e 1K":                      "-b 2K -e 1K: the smallest size is larger than the largest; swap them?",
		"-e 99999999999G":                  "-e 99999999999G: the size is larger than this machine's integers",
		"-f 1":                             "-f 1: it must be at least 2",
		"-f two":                           "-f two: not a whole number",
		"-i 0":                             "-i 0: it must be at least 1",
		"-i 1K -f 2":                       "-i and -f: sizes grow by steps or by a factor, not both; leave one out",
		"-i 1":                             "-i 1: from 8 to 64M that makes 67108857 lines; at most 100000 are measured",
		"-np 0":                            "-np 0: it must be at least 1",
		"-np -1":                           "-np -1: it must be at least 1",
		"-np 1000000":                      "-np 1000000: at most 1024 processes are started on one machine; for more ranks use -t, or a launcher over several",
		"-np 99999999999999999999":         "-np 99999999999999999999: the number is too large",
		"-np 64 -t 100":                    "-np 64 -t 100: that makes 6400 ranks; at most 4096 are started on one machine",
		"-hosts 0":                         "-hosts 0: it must be at least 1",
		"-r -1":                            "-r -1: a root is a rank number of at least 0, or all",
		"-a 4":                             "-a 4: it must be 0 (rank 0), 1 (average), 2 (fastest) or 3 (slowest)",
		"-n 0":                             "-n 0: it must be at least 1",
		"-peer-timeout 9ms":                "-peer-timeout 9ms: a healthy machine can be silent that long: give at least 1s, or 0 for never",
		"-T -1":                            "-T -1: it must be more than 0",
		"-T soon":                          "-T soon: a time is a number and a unit, such as 500us, 2s or 10m",
		"-d float,all":                     `-d float,all: "all": it must stand alone`,
		"hlep":                             "hlep: an argument without a flag; did you mean -h?",
		"-host 2":                          "-host: no such flag; did you mean -hosts? (-h all lists them)",
		"-zzz":                             "-zzz: no such flag (-h all lists them)",
		"-b":                               "-b needs a value: smallest size in bytes; K, M, G are powers of 1024 (8)",
		"-v=maybe":                         "-v=maybe: -v takes no value",
		"-I 2":                             "2: an argument without a flag (-h all lists the flags)",
		"-v 1":                             "1: an argument without a flag (-h all lists the flags)",
		"-g 2":                             "-g: of nccl-tests' flags, this has no meaning here: one rank has one device; say how many ranks with -np, or -t",
		"-Q":                               "-Q: no such flag (-h all lists them)",
		"-m 1000000000":                    "-m 1000000000: a group has at most 65536 calls; use -n for more iterations",
		"-G 2 -z 1":                        "-G and -z: a graph is launched, and waited for at the end; leave one out",
		"-plan ddp -model gpt2":            "-model gpt2: no such model; did you mean gpt2-85m? There are gpt2-85m gpt2-xl llama-7b resnet50",
		"-plan ddp -d half,float":          "-plan ddp: a step has elements of one type; give -d one",
		"-plan ddp -backend cpu,mpi":       "-plan ddp: a step is replayed on one backend; give -backend one",
		"allreduce":                        "allreduce: an argument without a flag; did you mean -op allreduce?",
		"zzz":                              "zzz: an argument without a flag (-h all lists the flags)",
		"-":                                "-: an argument without a flag (-h all lists the flags)",
		"-J=":                              "-J : give the name of a file",
		"-sizes 8 -b 4":                    "-sizes and -b: the list has all sizes; leave one out",
		"-n 5 -time 1s":                    "-n and -time: the iterations are a number, or what fits a time; leave one out",
		"-N 2 -for 1s":                     "-N and -for: it goes on for a number of cycles, or for a time; leave one out",
		"-plan ddp -op x":                  "-op x: no such operation; there are " + operations,
		"-model resnet50":                  "-model resnet50: it says whose step -plan replays; add -plan ddp, or write -sizes resnet50",
		"-mem device":                      "-mem device: the cpu backend works on host memory; name the one for your device with -backend",
		"-device 1":                        "-device: the cpu backend has no devices; name the one for yours with -backend, or leave it out",
		"-matrix spread:0.5":               "-matrix: only alltoallv sends by a matrix; add -op alltoallv, or leave it out",
		"-K 20":                            "-K 20: of 20 iterations that leaves none; give -n 21 or more",
		"-J x -csv ./x":                    "-csv ./x: -J writes that file; give another name",
		"-min-busbw -3":                    "-min-busbw -3: it must be a number of GB/s, such as 12.5",
		"-min-busbw Inf":                   "-min-busbw Inf: it must be a number of GB/s, such as 12.5",
		"-plan ddp -d int8":                "-plan ddp -d int8: gradients are half, bfloat16, float or double",
		"-z 4":                             "-z 4: it must be 0 (issue all, then wait), 1 (wait and barrier after each), 2 (wait after each) or 3 (as 0, and a barrier)",
		"-hints ctas=4":                    `-hints ctas=4: "ctas=4": a hint is min-ctas=N, max-ctas=N, cta-policy=NAME, traffic-class=N, launch-order=1 or net=NAME`,
		"-hints max-ctas=-4":               "-hints max-ctas=-4: max-ctas is -4: it must not be negative",
		"-R 3":                             "-R 3: it must be 0 (ordinary memory), 1 (registered) or 2 (symmetric windows)",
		"-backend cpu,mpj":                 `-backend cpu,mpj: no such backend; did you mean mpi? There are cpu nccl rccl oneccl mpi`,
		"-plan tp -model resnet50":         "-plan tp: resnet50 has no transformer layers; the schemes for it are ddp, zero1, zero2 and zero3",
		"-nodes 0":                         "-nodes 0: it must be at least 1",
		"-ppn many":                        "-ppn many: not a whole number",
		"-bind all":                        "-bind all: it must be core or none",
		"-hostfile=":                       "-hostfile : give the name of a file",
		"-lanucher x":                      "-lanucher: no such flag; did you mean -launcher? (-h all lists them)",
		"-plan ddp -n 1048577":             "-n 1048577: the time of each step of -plan is kept; give -n 1048576 or less",
		"-plan ddp -n 4611686018427387905": "-n 4611686018427387905: with 1 calls in each (-m, -G), that is more calls than can be counted; give -n 576460752303423488 or less",
		"-n 4611686018427387905 -m 65536":  "-n 4611686018427387905: with 65536 calls in each (-m, -G), that is more calls than can be counted; give -n 8796093022208 or less",
		"-m 65536 -G 281474976710656":      "-G 281474976710656: a graph is launched at most 1048576 times; use -n for more iterations",
		"-np 4 -t 4611686018427387904":     "-t 4611686018427387904: at most 4096 ranks are started on one machine",
		"-sizes 8,gpt2-85n":                `-sizes 8,gpt2-85n: "gpt2-85n": no such model; did you mean gpt2-85m? (models: gpt2-85m gpt2-xl llama-7b resnet50)`,
		"-sizes 8,,9":                      `-sizes 8,,9: "": a size is a number with an optional K, M or G, such as 64K (models: gpt2-85m gpt2-xl llama-7b resnet50)`,
	} {
		_, err := Parse(strings.Fields(args))
		require.EqualError(t, err, want, args)
	}
}

func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want []int
	}{
		{Options{Min: 8, Max: 64, Factor: 2}, []int{8, 16, 32, 64}},
		{Options{Min: 8, Max: 63, Factor: 2}, []int{8, 16, 32}},
		{Options{Min: 1, Max: 100, Factor: 10}, []int{1, 10, 100}},
		{Options{Min: 0, Max: 2, Step: 1}, []int{0, 1, 2}},
		{Options{Min: 0, Max: 2, Factor: 2}, []int{0}},
		{Options{Min: 1 << 62, Max: 1<<63 - 1, Factor: 2}, []int{1 << 62}},
		{Options{Min: 1<<63 - 2, Max: 1<<63 - 1, Step: 5}, []int{1<<63 - 2}},
	} {
		require.Equal(t, tc.want, tc.o.Sizes(4))
	}
}

func TestFits(t *testing.T) {
	require.NoError(t, Options{Root: 2}.Fits(3))
	require.NoError(t, Options{Root: AllRoots}.Fits(1))
	require.EqualError(t, Options{Root: 3}.Fits(3), "-r 3: there are 3 ranks, so the root is 0 to 2, or all")
	require.EqualError(t, Options{Root: 3}.Fits(1), "-r 3: there is 1 rank, so the root is 0, or all")
	require.NoError(t, FitsHosts(2, 2, "process", "processes"))
	require.EqualError(t, FitsHosts(3, 2, "process", "processes"), "-hosts 3: there are only 2 processes to spread over them; give -np 3 or more")
	require.EqualError(t, FitsHosts(3, 1, "rank", "ranks"), "-hosts 3: there is only 1 rank, and each host needs one; give -np 3 or more")
	require.True(t, Options{HTML: "x"}.Individually())
	require.False(t, Default().Individually())
	require.False(t, Options{JSON: "x"}.ToStdout())
	require.True(t, Options{CSV: Stdout}.ToStdout())
}

func FuzzParse(f *testing.F) {
	f.Add("-op allreduce -b 8 -e 64M")
	f.Add("-n20 --hosts=2 -J x")
	f.Add("-sizes 8,1M,gpt2-85m -split mod:3 -device 0,1 -time 5ms -T 0 -K 3 -r all")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := Parse(strings.Split(s, " "))
		if err == nil && !o.Help {
			require.LessOrEqual(t, o.Min, o.Max)
			require.GreaterOrEqual(t, o.NP, 1)
			require.GreaterOrEqual(t, o.Largest(2), 0)
		}
	})
}

func TestTimed(t *testing.T) {
	o := Default()
	for _, tc := range []struct {
		given        bool
		iters, bytes int
		want         int
	}{
		{false, 20, 0, 500},
		{false, 20, 8, 500},
		{false, 20, 2 << 10, 500},
		{false, 20, 64 << 10, 80},
		{false, 20, 128<<10 + 8, 20},
		{false, 20, 64 << 20, 20},
		{true, 20, 8, 20},
		{true, 7, 64 << 20, 7},
	} {
		o.ItersGiven, o.Iters = tc.given, tc.iters
		require.Equal(t, tc.want, o.Timed(tc.bytes), "%+v", tc)
	}
}

func TestLong(t *testing.T) {
	for args, want := range map[string]time.Duration{
		"": 10 * time.Millisecond, "-n 20": 0, "-time 2s": 2 * time.Second, "-flush": 0, "-backend nccl -mem device -G 2": 0,
	} {
		o, err := Parse(strings.Fields(args))
		require.NoError(t, err, args)
		require.Equal(t, want, o.Long(), args)
	}
}

func parsed(t *testing.T, args []string) Options {
	t.Helper()
	o, err := Parse(args)
	require.NoError(t, err)
	return o
}
