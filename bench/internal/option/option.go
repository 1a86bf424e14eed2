// Package option reads bench's command line. It refuses what makes no sense with one line that says
// what to write instead, before any rank is started.
//
// One table of flags drives the parser, the help and the suggestions for misspelled flags. Package
// flag cannot serve here, because bench also accepts nccl-tests' forms such as -n20.
package option

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/model"
	"github.com/goccl/goccl/ccl"
)

// Options are bench's flags.
type Options struct {
	Collectives []string
	Types       []ccl.Type
	Ops         []ccl.Op
	Root        int // AllRoots for each in turn

	Min, Max     int // bytes
	Step, Factor int // one of them is 0
	Lengths      []Length
	Matrix       *coll.Matrix // of alltoallv; nil for ours
	Plan, Model  string       // Plan "" for single collectives
	Overlap      bool
	Links        bool

	Iters, Warmup, Agg int
	Check              int           // iterations that are checked
	Target             time.Duration // of a half line; 0: Iters counts
	Blocking           Blocking
	Graph              int           // launches of the captured iterations; 0: calls are made one by one
	Cycles             int           // 0: for ever
	Soak               time.Duration // 0: Cycles counts
	Timeout            time.Duration // of one line; 0 for none
	PeerTimeout        time.Duration // as ccl.Options has it

	Backends   []string
	Mem        string
	Devices    []int // of a host's ranks in turn; nil: each its own
	Registered bool  // -R 1 or 2
	Windows    bool  // -R 2
	Hints      ccl.Hints
	Misalign   int // elements
	Split      Split
	Rotate     int
	Flush      bool

	Average    Average
	Iterations bool // -I
	Skip       int
	Stamp      bool
	Memory     bool
	Ceiling    float64       // of the report's curves, GB/s; 0: found out
	MinBusBW   float64       // 0: any
	MaxP99     time.Duration // 0: any
	MinAverage float64       // what nccl-tests' footer compares the average with; 0: nothing

	Job
	NP, Hosts, Threads int
	PerThread          int    // of Threads: how many nccl-tests counts as one thread's
	As                 string // the program of nccl-tests that this is run as; "" for bench
	NPGiven            bool
	ItersGiven         bool
	BackendGiven       bool
	MemGiven           bool
	BlockingGiven      bool

	JSON, CSV, HTML string
	SVG, PNG        string // directories
	Verbose         bool
	Help            bool
	HelpAll         bool // with every flag
}

// Timed is how many iterations a line of that many bytes is timed over where Long is 0. Graphs of small sizes get more
// without -n, up to 25 times as many.
func (o *Options) Timed(bytes int) int {
	const whole, most = 256 << 10, 25
	if o.ItersGiven {
		return o.Iters
	}
	return o.Iters * min(max(whole/max(bytes, 1), 1), most)
}

// Long is how long a line is timed at least, -time or without -n as long as a machine needs to show what it does as a
// rule: 20 calls of a microsecond are over before two processes have met. It is 0 where the iterations are a number.
func (o *Options) Long() time.Duration {
	const enough = 10 * time.Millisecond
	if o.ItersGiven || o.Flush || o.Graph > 0 || o.Target > 0 {
		return o.Target
	}
	return enough
}

// AllRoots stands, as a root, for each rank in turn.
const AllRoots = -1

// Average says which of the ranks' times is reported.
type Average int

// The values of -a.
const (
	OfRank0 Average = iota
	Mean
	Least
	Most
)

// Blocking says when a rank waits for its calls.
type Blocking int

// The values of -z.
const (
	WaitAtEnd Blocking = iota
	BarrierEach
	WaitEach
	BarrierAtEnd
)

// The most processes and ranks that are started on one machine, and the most lines,
// against a slip of the finger.
const (
	MaxProcesses = 1024
	maxRanks     = 4096
	maxLines     = 100000 // of a curve
	maxCalls     = 1 << 59
	maxLaunches  = 1 << 20 // of a graph: with maxAgg calls they can be counted
	maxSteps     = 1 << 20 // of -plan
)

// Default is what an empty command line means on this machine.
func Default() Options {
	return Options{
		Collectives: []string{"allreduce"},
		Types:       []ccl.Type{ccl.TypeFloat32},
		Ops:         []ccl.Op{ccl.Sum},
		Min:         8, Max: 64 << 20, Factor: 2,
		Model: "gpt2-85m",
		Iters: 20, Warmup: 1, Agg: 1, Check: 1, Blocking: WaitEach, Cycles: 1, Average: Mean,
		Backends: []string{"cpu"}, Mem: "host", Rotate: 1,
		Job: DefaultJob(), NP: min(max(runtime.NumCPU(), 2), 8), Hosts: 1, Threads: 1, PerThread: 1,
	}
}

// Parse reads the arguments after the program's name.
func Parse(args []string) (Options, error) {
	o := Default()
	given := map[string]bool{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, glued := cut(arg)
		if !strings.HasPrefix(arg, "-") || name == "" {
			return o, stray(arg)
		}
		f := o.flag(name)
		if f == nil && !glued && len(name) > 1 && name[1] >= '0' && name[1] <= '9' {
			f, value, glued = o.flag(name[:1]), name[1:], true // getopt's -n20
		}
		if f == nil {
			f = o.theirsAsOurs(name)
		}
		if why, theirs := leftOut[name]; f == nil && theirs {
			return o, fmt.Errorf("-%s: of nccl-tests' flags, this has no meaning here: %s", name, why)
		}
		if f == nil {
			return o, unknown("-", name, "flag", flagNames(flags(&o)), "-h all lists them")
		}
		if slices.Contains(numbered, f.name) {
			if !glued && len(args) > 0 && (args[0] == "0" || args[0] == "1") {
				value, glued, args = args[0], true, args[1:]
			}
			value = cmp.Or(map[string]string{"0": "false", "1": "true"}[value], value)
		}
		var err error
		if args, err = f.read(arg, value, glued, args); err != nil {
			return o, err
		}
		if o.Help {
			o.HelpAll = len(args) > 0 && args[0] == "all"
			return o, nil
		}
		given[f.name] = f.value != "" || value != "false"
	}
	return o.settle(given)
}

// settle fills in what was not given and refuses what does not fit together.
func (o Options) settle(given map[string]bool) (Options, error) {
	o.NPGiven, o.ItersGiven, o.BackendGiven, o.MemGiven, o.BlockingGiven = given["np"], given["n"], given["backend"],
		given["mem"], given["z"]
	if given["t"] && !given["np"] {
		o.NP = 1 // as in nccl-tests: threads of one process
	}
	switch {
	case given["i"] && given["f"]:
		return o, errors.New("-i and -f: sizes grow by steps or by a factor, not both; leave one out")
	case given["i"]:
		o.Factor = 0
	}
	switch {
	case o.Min > o.Max && !given["e"]:
		o.Max = o.Min
	case o.Min > o.Max && !given["b"]:
		o.Min = o.Max
	case o.Min > o.Max:
		return o, fmt.Errorf("-b %s -e %s: the smallest size is larger than the largest; swap them?", FormatSize(o.Min),
			FormatSize(o.Max))
	}
	return o.fit(given)
}

// fit refuses what does not fit together.
func (o Options) fit(given map[string]bool) (Options, error) {
	lines, calls, err := (o.Max-o.Min)/max(o.Step, 1)+1, o.Agg*max(o.Graph, 1), o.conflict(given)
	switch {
	case o.Factor == 0 && lines > maxLines:
		err = fmt.Errorf("-i %s: from %s to %s that makes %d lines; at most %d are measured", FormatSize(o.Step),
			FormatSize(o.Min), FormatSize(o.Max), lines, maxLines)
	case err != nil:
	case o.Iters > maxCalls/calls:
		err = fmt.Errorf("-n %d: with %d calls in each (-m, -G), that is more calls than can be counted; give -n %d or less", o.Iters, calls, maxCalls/calls)
	case o.Plan != "" && o.Iters > maxSteps:
		err = fmt.Errorf("-n %d: the time of each step of -plan is kept; give -n %d or less", o.Iters, maxSteps)
	case o.NP*o.Threads > maxRanks:
		err = fmt.Errorf("-np %d -t %d: that makes %d ranks; at most %d are started on one machine", o.NP, o.Threads,
			o.NP*o.Threads, maxRanks)
	}
	return o, err
}

// floats are the types that -plan takes.
var floats = []ccl.Type{ccl.TypeFloat16, ccl.TypeBFloat16, ccl.TypeFloat32, ccl.TypeFloat64}

// conflict refuses flags that exclude each other.
func (o Options) conflict(given map[string]bool) error {
	for _, pair := range []struct{ a, b, why string }{
		{"sizes", "b", "the list has all sizes"}, {"sizes", "e", "the list has all sizes"},
		{"sizes", "i", "the list has all sizes"}, {"sizes", "f", "the list has all sizes"},
		{"n", "time", "the iterations are a number, or what fits a time"},
		{"N", "for", "it goes on for a number of cycles, or for a time"},
		{"plan", "op", "the scheme has its own operations"}, {"plan", "sizes", "the model has its own sizes"},
		{"plan", "overlap", "a step is replayed as it is"},
		{"flush", "m", "each iteration is timed alone"}, {"flush", "z", "each iteration is timed alone"},
		{"flush", "time", "each iteration is timed alone; say how many with -n"},
		{"G", "z", "a graph is launched, and waited for at the end"},
		{"G", "time", "what is captured is a number of iterations; say how many with -n"},
		{"G", "flush", "a graph's iterations are timed together"},
		{"G", "overlap", "a graph has no compute beside its calls"},
		{"G", "plan", "a step is replayed call by call"},
	} {
		if given[pair.a] && given[pair.b] {
			return fmt.Errorf("-%s and -%s: %s; leave one out", pair.a, pair.b, pair.why)
		}
	}
	if err := o.apart(); err != nil {
		return err
	}
	switch {
	case given["model"] && o.Plan == "":
		return fmt.Errorf("-model %s: it says whose step -plan replays; add -plan ddp, or write -sizes %s", o.Model, o.Model)
	case o.Plan != "" && !slices.Contains(floats, o.Types[0]):
		return fmt.Errorf("-plan %s -d %v: gradients are half, bfloat16, float or double", o.Plan, o.Types[0])
	case o.Plan != "" && len(o.Types) > 1:
		return fmt.Errorf("-plan %s: a step has elements of one type; give -d one", o.Plan)
	case o.Plan != "" && len(o.Backends) > 1:
		return fmt.Errorf("-plan %s: a step is replayed on one backend; give -backend one", o.Plan)
	case o.Plan != "":
		if _, err := model.Named(o.Model).Step(o.Plan, 2, 4); err != nil {
			return fmt.Errorf("-plan %s: %w", o.Plan, err)
		}
	case given["matrix"] && !slices.Contains(o.Collectives, "alltoallv"):
		return errors.New("-matrix: only alltoallv sends by a matrix; add -op alltoallv, or leave it out")
	case o.Skip >= o.Iters:
		return fmt.Errorf("-K %d: of %d iterations that leaves none; give -n %d or more", o.Skip, o.Iters, o.Skip+1)
	case o.onCPU() && given["device"]:
		return errors.New("-device: the cpu backend has no devices; name the one for yours with -backend, or leave it out")
	case o.Mem != "host" && o.onCPU():
		return fmt.Errorf("-mem %s: the cpu backend works on host memory; name the one for your device with -backend", o.Mem)
	}
	return nil
}

// onCPU reports whether the cpu backend alone was asked for, or none.
func (o Options) onCPU() bool { return len(o.Backends) == 1 && o.Backends[0] == "cpu" }

// DeviceOf is the device for the local-th rank of a host, -1 where nobody has named one.
func (o *Options) DeviceOf(local int) int {
	if len(o.Devices) == 0 {
		return -1
	}
	return o.Devices[local%len(o.Devices)]
}

// Individually reports whether the results of single iterations are wanted, by a
// file or a limit if not in the table.
func (o Options) Individually() bool {
	return o.Iterations || o.Flush || o.MaxP99 > 0 || o.JSON != "" || o.CSV != "" || o.HTML != "" || o.SVG != "" ||
		o.PNG != ""
}

// ToStdout reports whether a file goes to standard output, which programs read then: the table must not.
func (o Options) ToStdout() bool { return slices.Contains([]string{o.JSON, o.CSV, o.HTML}, Stdout) }

// Stdout is the name of a file that means standard output.
const Stdout = "-"

// Fits refuses what does not fit a job of so many ranks.
func (o Options) Fits(ranks int) error {
	if o.Root >= ranks {
		if ranks == 1 {
			return fmt.Errorf("-r %d: there is 1 rank, so the root is 0, or all", o.Root)
		}
		return fmt.Errorf("-r %d: there are %d ranks, so the root is 0 to %d, or all", o.Root, ranks, ranks-1)
	}
	return nil
}

// FitsHosts refuses more hosts than there are units, processes or ranks, to spread over them.
func FitsHosts(hosts, units int, one, several string) error {
	switch {
	case hosts <= units:
		return nil
	case units == 1:
		return fmt.Errorf("-hosts %d: there is only 1 %s, and each host needs one; give -np %d or more", hosts, one, hosts)
	}
	return fmt.Errorf("-hosts %d: there are only %d %s to spread over them; give -np %d or more", hosts, units, several,
		hosts)
}

func stray(arg string) error {
	if n := Nearest(squeeze(arg), coll.Names()); n != "" {
		return fmt.Errorf("%s: an argument without a flag; did you mean -op %s?", arg, n)
	}
	if n := Nearest(arg, commandNames()); n == "help" {
		return fmt.Errorf("%s: an argument without a flag; did you mean -h?", arg)
	} else if n != "" {
		return fmt.Errorf("%s: an argument without a flag; did you mean bench %s?", arg, n)
	}
	return fmt.Errorf("%s: an argument without a flag (-h all lists the flags)", arg)
}

// unknown says that there is no such thing, and which of the known ones may have been meant.
func unknown(prefix, word, what string, known []string, lists string) error {
	if n := Nearest(word, known); n != "" {
		return fmt.Errorf("%s%s: no such %s; did you mean %[1]s%[4]s? (%[5]s)", prefix, word, what, n, lists)
	}
	return fmt.Errorf("%s%s: no such %s (%s)", prefix, word, what, lists)
}

// whole reads an integer that is at least least.
func whole(s string, least int) (int, error) {
	n, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("the number is too large")
	case err != nil:
		return 0, errors.New("not a whole number")
	case n < least:
		return 0, fmt.Errorf("it must be at least %d", least)
	}
	return n, nil
}

func squeeze(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
