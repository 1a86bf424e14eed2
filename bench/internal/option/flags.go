package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/model"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/engine"
)

// flag is one flag: the table drives the parser, the help and the suggestions.
type flag struct {
	name  string
	value string // what it takes, for the help; "" if nothing
	help  string // "" where the line of another flag tells of it
	group string
	set   func(s string) error
}

const (
	groupWhat  = "What to measure"
	groupHow   = "How"
	groupWho   = "On what"
	groupStats = "Statistics, limits (exit 3 if missed), reports"
	groupJob   = "Ranks (when no launcher started any)"
)

// flags are those of bench, which set o.
func flags(o *Options) []flag { return slices.Concat(benchFlags(o), jobFlags(&o.Job)) }

func benchFlags(o *Options) []flag {
	return []flag{
		{"op", "OP", "collective, a comma list of them, or all (allreduce)", groupWhat, into(&o.Collectives, collectives)},
		{"b", "SIZE", "smallest size in bytes; K, M, G are powers of 1024 (8)", groupWhat, size(&o.Min, 0)},
		{"e", "SIZE", "largest size (64M)", groupWhat, size(&o.Max, 0)},
		{"f", "N", "multiply the size by N, line by line (2)", groupWhat, number(&o.Factor, 2)},
		{"i", "SIZE", "instead, add SIZE line by line", groupWhat, size(&o.Step, 1)},
		{"sizes", "LIST", "a list of sizes, and of models whose tensor sizes to use: 8,1M,gpt2-85m; " +
			strings.Join(model.Names(), " "), groupWhat, into(&o.Lengths, lengths)},
		{"d", "TYPE", "element type, a list, or all: " + strings.Join(typeNames(), " ") + " (float)", groupWhat,
			into(&o.Types, listTypes)},
		{"o", "REDOP", "operator, a list, or all: " + strings.Join(opNames(), " ") + " (sum); mulsum", groupWhat,
			into(&o.Ops, listOps)},
		{"r", "ROOT", "root rank, or all (0)", groupWhat, into(&o.Root, root)},
		{"matrix", "FILE", "alltoallv: relative amounts from rank i to rank j; spread:F draws them at random", groupWhat,
			into(&o.Matrix, coll.ReadMatrix)},
		{"plan", "SCHEME", "replay the collectives of a training step: " + strings.Join(model.SchemeNames(), " "),
			groupWhat, oneOf(&o.Plan, "scheme", model.SchemeNames())},
		{"model", "NAME", "the model whose step -plan replays (gpt2-85m)", groupWhat,
			oneOf(&o.Model, "model", model.Names())},
		{"overlap", "", "measure how much of a call computation hides", groupWhat, on(&o.Overlap)},
		{"links", "", "measure the link of each pair of hosts first", groupWhat, on(&o.Links)},

		{"n", "N", "timed iterations (at least 20, and as many as take 10ms)", groupHow, number(&o.Iters, 1)},
		{"time", "T", "instead, as many as take this time, such as 2s, at least 20", groupHow, into(&o.Target, span)},
		{"w", "N", "warm-up iterations before each size (1); 0: none before the first row either", groupHow,
			number(&o.Warmup, 0)},
		{"m", "N", "calls per iteration, issued as one group (1)", groupHow,
			upTo(&o.Agg, 1, maxAgg, fmt.Sprintf("a group has at most %d calls; use -n for more iterations", maxAgg))},
		{"c", "N", "iterations whose data are checked; 0: none (1)", groupHow, number(&o.Check, 0)},
		{"z", "N", "0: issue all, then wait; 1: wait and barrier after each; 2: wait after each; 3: as 0, and barrier (2)",
			groupHow, upTo(&o.Blocking, 0, BarrierAtEnd,
				"it must be 0 (issue all, then wait), 1 (wait and barrier after each), 2 (wait after each) or 3 (as 0, and a barrier)")},
		{"G", "N", "on a device: capture the iterations as a graph and launch it N times (0)", groupHow,
			upTo(&o.Graph, 0, maxLaunches,
				fmt.Sprintf("a graph is launched at most %d times; use -n for more iterations", maxLaunches))},
		{"N", "N", "repeat everything N times; 0: for ever (1)", groupHow, number(&o.Cycles, 0)},
		{"for", "T", "repeat everything for this time, such as 10m", groupHow, into(&o.Soak, span)},
		{"T", "T", "give up when one line takes longer, such as 90s; 0: never (0)", groupHow, into(&o.Timeout, spanOr0)},
		{"peer-timeout", "T", "a rank is lost after this long without a sign of life; 0: never (5s)", groupHow,
			into(&o.PeerTimeout, peerTimeout)},

		{"backend", "NAME", "engine: " + strings.Join(engine.Names(), " ") +
			"; or a comma list, measured in turns (the one for this machine's device, else cpu)", groupWho,
			into(&o.Backends, backends)},
		{"mem", "KIND", "memory of the buffers: host device managed (what the engine works on)", groupWho,
			oneOf(&o.Mem, "memory", memKinds)},
		{"device", "LIST", "devices of a host's ranks, in turn; 0: all share device 0 (each its own)", groupWho,
			into(&o.Devices, devices)},
		{"hints", "LIST", "hints for NCCL or RCCL: min-ctas=4,max-ctas=16,cta-policy=efficiency,traffic-class=3,net=IB (none)", groupWho, into(&o.Hints, hints)},
		{"R", "N", "1: register the buffers; 2: make them symmetric windows (0)", groupWho, o.register},
		{"u", "N", "start the buffers N elements off their alignment (0)", groupWho, number(&o.Misalign, 0)},
		{"split", "HOW", "split the ranks into groups that call at the same time: node, mod:N, div:N, mask:N", groupWho,
			into(&o.Split, split)},
		{"rotate", "N", "use N sets of buffers in turn, to avoid warm caches (1)", groupWho, number(&o.Rotate, 1)},
		{"flush", "", "sweep the caches before each iteration, and time it alone", groupWho, on(&o.Flush)},

		{"a", "N", "which rank's time counts: 0: rank 0; 1: average; 2: fastest; 3: slowest (1)", groupStats,
			upTo(&o.Average, 0, Most, "it must be 0 (rank 0), 1 (average), 2 (fastest) or 3 (slowest)")},
		{"I", "", "time each iteration in a separate pass: columns i_min i_max i_p99 i_cv%", groupStats, on(&o.Iterations)},
		{"K", "N", "leave out the first N iterations of -I (0)", groupStats, number(&o.Skip, 0)},
		{"S", "", "end each line with the time of day", groupStats, on(&o.Stamp)},
		{"M", "", "report the memory that the ranks take", groupStats, on(&o.Memory)},
		{"v", "", "end each line with the algorithm that was chosen", groupStats, on(&o.Verbose)},
		{"min-busbw", "X", "fail if the average bus bandwidth is lower, in GB/s", groupStats, into(&o.MinBusBW, bandwidth)},
		{"max-p99", "T", "fail if the 99th percentile of any line is longer; with its unit: 500us", groupStats,
			into(&o.MaxP99, spanWithUnit)},
		{"J", "FILE", "also write the results as JSON; - is standard output", groupStats,
			named(&o.JSON, "the name of a file")},
		{"csv", "FILE", "also write the results as CSV", groupStats, named(&o.CSV, "the name of a file")},
		{"html", "FILE", "also write a report with curves, in one file", groupStats, named(&o.HTML, "the name of a file")},
		{"svg", "DIR", "write each figure of the report as SVG", groupStats, named(&o.SVG, "the name of a file")},
		{"png", "DIR", "write each figure as PNG (needs chromium, google-chrome or rsvg-convert)", groupStats,
			named(&o.PNG, "the name of a file")},
		{"ceiling", "X", "draw the links' bandwidth in the report, in GB/s (estimated)", groupStats,
			into(&o.Ceiling, bandwidth)},
		{"h", "", "list the most used flags; -h all lists all", groupStats, on(&o.Help)},
		{"help", "", "", "", on(&o.Help)},

		{"np", "N", "processes to start on this machine (the cores, at least 2, at most 8)", groupJob,
			upTo(&o.NP, 1, MaxProcesses,
				fmt.Sprintf("at most %d processes are started on one machine; for more ranks use -t, or a launcher over several",
					MaxProcesses))},
		{"t", "N", "ranks per process, as goroutines (1); alone it means -np 1", groupJob, ranks(&o.Threads)},
		{"hosts", "N", "make the processes act as N hosts, with TCP between them (1)", groupJob, number(&o.Hosts, 1)},
	}
}

// numbered are the flags that nccl-tests writes with a 0 or a 1, which may stand here as well.
var numbered = []string{"I", "M", "S"}

// leftOut are the flags of nccl-tests that have no meaning here, and why.
var leftOut = map[string]string{
	"g":     "one rank has one device; say how many ranks with -np, or -t",
	"ngpus": "one rank has one device; say how many ranks with -np, or -t",
}

// theirsAsOurs is the flag for an option of nccl-tests that bench has by another name, or takes because it changes
// nothing: a long name, unless bench has another flag of that name, or a letter.
func (o *Options) theirsAsOurs(name string) *flag {
	for _, a := range aliases(o) {
		if a.letter == "g" || name != a.long && name != a.letter {
			continue
		}
		if f := o.flag(a.letter); f != nil {
			return f
		}
		return &flag{name: a.letter, value: "N", help: "as in nccl-tests", set: a.set}
	}
	return nil
}

// flag is the flag of that name, which sets o, or nil.
func (o *Options) flag(name string) *flag { return find(flags(o), name) }

func find(all []flag, name string) *flag {
	if i := slices.IndexFunc(all, func(f flag) bool { return f.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func flagNames(all []flag) []string { return prose.Names(all, func(f flag) string { return f.name }) }

// cut takes a flag apart: its name, and the value that is glued to it by an equals sign.
func cut(arg string) (name, value string, glued bool) {
	return strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
}

// read sets f, which arg names, to the value that is glued to it, or else to the first of args. It returns the
// arguments after that.
func (f *flag) read(arg, value string, glued bool, args []string) (rest []string, err error) {
	switch {
	case f.value == "" && glued && value != "true" && value != "false":
		return nil, fmt.Errorf("%s: -%s takes no value", arg, f.name)
	case f.value == "" || glued:
	case len(args) == 0:
		return nil, fmt.Errorf("-%s needs a value: %s", f.name, f.help)
	default:
		value, args = args[0], args[1:]
	}
	if err := f.set(value); err != nil {
		return nil, fmt.Errorf("-%s %s: %w", f.name, value, err)
	}
	return args, nil
}
