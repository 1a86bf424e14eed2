package option

import (
	"fmt"
	"slices"
	"strings"

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
	set   func(o *Options, s string) error
}

const (
	groupWhat  = "What to measure"
	groupHow   = "How"
	groupWho   = "On what"
	groupStats = "Statistics, limits (exit 3 if missed), reports"
	groupJob   = "Ranks (when no launcher started any)"
)

func flags() []flag { return slices.Concat(benchFlags(), jobFlags()) }

func benchFlags() []flag {
	return []flag{
		{"op", "OP", "collective, a comma list of them, or all (allreduce)", groupWhat, setCollectives},
		{"b", "SIZE", "smallest size in bytes; K, M, G are powers of 1024 (8)", groupWhat, size(func(o *Options) *int { return &o.Min }, 0)},
		{"e", "SIZE", "largest size (64M)", groupWhat, size(func(o *Options) *int { return &o.Max }, 0)},
		{"f", "N", "multiply the size by N, line by line (2)", groupWhat, number(func(o *Options) *int { return &o.Factor }, 2)},
		{"i", "SIZE", "instead, add SIZE line by line", groupWhat, size(func(o *Options) *int { return &o.Step }, 1)},
		{"sizes", "LIST", "a list of sizes, and of models whose tensor sizes to use: 8,1M,gpt2-85m; " + strings.Join(model.Names(), " "), groupWhat, setSizes},
		{"d", "TYPE", "element type, a list, or all: " + strings.Join(typeNames(), " ") + " (float)", groupWhat, setTypes},
		{"o", "REDOP", "operator, a list, or all: " + strings.Join(opNames(), " ") + " (sum); mulsum", groupWhat, setOps},
		{"r", "ROOT", "root rank, or all (0)", groupWhat, setRoot},
		{"matrix", "FILE", "alltoallv: relative amounts from rank i to rank j; spread:F draws them at random", groupWhat, setMatrix},
		{"plan", "SCHEME", "replay the collectives of a training step: " + strings.Join(model.SchemeNames(), " "), groupWhat, oneOf(func(o *Options) *string { return &o.Plan }, "scheme", model.SchemeNames())},
		{"model", "NAME", "the model whose step -plan replays (gpt2-85m)", groupWhat, oneOf(func(o *Options) *string { return &o.Model }, "model", model.Names())},
		{"overlap", "", "measure how much of a call computation hides", groupWhat, set(func(o *Options) *bool { return &o.Overlap })},

		{"n", "N", "timed iterations (at least 20, and as many as take 10ms)", groupHow, number(func(o *Options) *int { return &o.Iters }, 1)},
		{"time", "T", "instead, as many as take this time, such as 2s, at least 20", groupHow, setTarget},
		{"w", "N", "warm-up iterations before each size (1); 0: none before the first row either", groupHow, number(func(o *Options) *int { return &o.Warmup }, 0)},
		{"m", "N", "calls per iteration, issued as one group (1)", groupHow, upTo(func(o *Options) *int { return &o.Agg }, 1, maxAgg, fmt.Sprintf("a group has at most %d calls; use -n for more iterations", maxAgg))},
		{"c", "N", "iterations whose data are checked; 0: none (1)", groupHow, number(func(o *Options) *int { return &o.Check }, 0)},
		{"z", "N", "0: issue all, then wait; 1: wait and barrier after each; 2: wait after each; 3: as 0, and barrier (2)", groupHow, upTo(func(o *Options) *Blocking { return &o.Blocking }, 0, BarrierAtEnd,
			"it must be 0 (issue all, then wait), 1 (wait and barrier after each), 2 (wait after each) or 3 (as 0, and a barrier)")},
		{"G", "N", "on a device: capture the iterations as a graph and launch it N times (0)", groupHow, number(func(o *Options) *int { return &o.Graph }, 0)},
		{"N", "N", "repeat everything N times; 0: for ever (1)", groupHow, number(func(o *Options) *int { return &o.Cycles }, 0)},
		{"for", "T", "repeat everything for this time, such as 10m", groupHow, setSoak},
		{"T", "T", "give up when one line takes longer, such as 90s; 0: never (0)", groupHow, setTimeout},
		{"peer-timeout", "T", "a rank is lost after this long without a sign of life; 0: never (5s)", groupHow, setPeerTimeout},

		{"backend", "NAME", "engine: " + strings.Join(engine.Names(), " ") + "; or a comma list, measured in turns (the one for this machine's device, else cpu)", groupWho, setBackends},
		{"mem", "KIND", "memory of the buffers: host device managed (what the engine works on)", groupWho, oneOf(func(o *Options) *string { return &o.Mem }, "memory", memKinds)},
		{"device", "LIST", "devices of a host's ranks, in turn; 0: all share device 0 (each its own)", groupWho, setDevices},
		{"hints", "LIST", "hints for NCCL or RCCL: min-ctas=4,max-ctas=16,cta-policy=efficiency,traffic-class=3,net=IB (none)", groupWho, setHints},
		{"R", "N", "1: register the buffers; 2: make them symmetric windows (0)", groupWho, setRegister},
		{"u", "N", "start the buffers N elements off their alignment (0)", groupWho, number(func(o *Options) *int { return &o.Misalign }, 0)},
		{"split", "HOW", "split the ranks into groups that call at the same time: node, mod:N, div:N, mask:N", groupWho, setSplit},
		{"rotate", "N", "use N sets of buffers in turn, to avoid warm caches (1)", groupWho, number(func(o *Options) *int { return &o.Rotate }, 1)},
		{"flush", "", "sweep the caches before each iteration, and time it alone", groupWho, set(func(o *Options) *bool { return &o.Flush })},

		{"a", "N", "which rank's time counts: 0: rank 0; 1: average; 2: fastest; 3: slowest (1)", groupStats, upTo(func(o *Options) *Average { return &o.Average }, 0, Most, "it must be 0 (rank 0), 1 (average), 2 (fastest) or 3 (slowest)")},
		{"I", "", "time each iteration in a separate pass: columns i_min i_max i_p99 i_cv%", groupStats, set(func(o *Options) *bool { return &o.Iterations })},
		{"K", "N", "leave out the first N iterations of -I (0)", groupStats, number(func(o *Options) *int { return &o.Skip }, 0)},
		{"S", "", "end each line with the time of day", groupStats, set(func(o *Options) *bool { return &o.Stamp })},
		{"M", "", "report the memory that the ranks take", groupStats, set(func(o *Options) *bool { return &o.Memory })},
		{"v", "", "end each line with the algorithm that was chosen", groupStats, set(func(o *Options) *bool { return &o.Verbose })},
		{"min-busbw", "X", "fail if the average bus bandwidth is lower, in GB/s", groupStats, bandwidth(func(o *Options) *float64 { return &o.MinBusBW })},
		{"max-p99", "T", "fail if the 99th percentile of any line is longer; with its unit: 500us", groupStats, setMaxP99},
		{"J", "FILE", "also write the results as JSON; - is standard output", groupStats, named(func(o *Options) *string { return &o.JSON }, "the name of a file")},
		{"csv", "FILE", "also write the results as CSV", groupStats, named(func(o *Options) *string { return &o.CSV }, "the name of a file")},
		{"html", "FILE", "also write a report with curves, in one file", groupStats, named(func(o *Options) *string { return &o.HTML }, "the name of a file")},
		{"svg", "DIR", "write each figure of the report as SVG", groupStats, named(func(o *Options) *string { return &o.SVG }, "the name of a file")},
		{"png", "DIR", "write each figure as PNG (needs chromium, google-chrome or rsvg-convert)", groupStats, named(func(o *Options) *string { return &o.PNG }, "the name of a file")},
		{"ceiling", "X", "draw the links' bandwidth in the report, in GB/s (estimated)", groupStats, bandwidth(func(o *Options) *float64 { return &o.Ceiling })},
		{"h", "", "list the most used flags; -h all lists all", groupStats, set(func(o *Options) *bool { return &o.Help })},
		{"help", "", "", "", set(func(o *Options) *bool { return &o.Help })},

		{"np", "N", "processes to start on this machine (the cores, at least 2, at most 8)", groupJob, upTo(func(o *Options) *int { return &o.NP }, 1, MaxProcesses,
			fmt.Sprintf("at most %d processes are started on one machine; for more ranks use -t, or a launcher over several", MaxProcesses))},
		{"t", "N", "ranks per process, as goroutines (1); alone it means -np 1", groupJob, number(func(o *Options) *int { return &o.Threads }, 1)},
		{"hosts", "N", "make the processes act as N hosts, with TCP between them (1)", groupJob, number(func(o *Options) *int { return &o.Hosts }, 1)},
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
func theirsAsOurs(name string) *flag {
	for _, a := range aliases {
		if a.letter == "g" || name != a.long && name != a.letter {
			continue
		}
		if f := lookup(a.letter); f != nil {
			return f
		}
		return &flag{name: a.letter, value: "N", help: "as in nccl-tests", set: a.set}
	}
	return nil
}

func lookup(name string) *flag {
	fs := flags()
	if i := slices.IndexFunc(fs, func(f flag) bool { return f.name == name }); i >= 0 {
		return &fs[i]
	}
	return nil
}

func flagNames() []string { return prose.Names(flags(), func(f flag) string { return f.name }) }
