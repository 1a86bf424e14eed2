package option

import (
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/model"
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
		{"i", "SIZE", "or add SIZE, line by line", groupWhat, size(func(o *Options) *int { return &o.Step }, 1)},
		{"sizes", "LIST", "sizes, and models whose tensors to take: 8,1M,gpt2-85m; " + strings.Join(model.Names(), " "), groupWhat, setSizes},
		{"d", "TYPE", "element type, a list, or all: " + strings.Join(typeNames(), " ") + " (float)", groupWhat, setTypes},
		{"o", "REDOP", "operator, a list, or all: " + strings.Join(opNames(), " ") + " (sum); mulsum", groupWhat, setOps},
		{"r", "ROOT", "root rank, or all (0)", groupWhat, setRoot},
		{"matrix", "FILE", "alltoallv: what rank i sends to rank j, relative to the others; spread:F draws it", groupWhat, setMatrix},
		{"plan", "SCHEME", "a training step's collectives: " + strings.Join(model.SchemeNames(), " "), groupWhat, setPlan},
		{"model", "NAME", "of this model (gpt2-85m)", groupWhat, setModel},
		{"overlap", "", "how much of a call compute hides", groupWhat, set(func(o *Options) *bool { return &o.Overlap })},

		{"n", "N", "timed iterations (20, and as many as take 10ms)", groupHow, number(func(o *Options) *int { return &o.Iters }, 1)},
		{"time", "T", "or as many as take that long, such as 2s, at least 20", groupHow, setTarget},
		{"w", "N", "warm-up iterations before them (1); 0: not before the first row either", groupHow, number(func(o *Options) *int { return &o.Warmup }, 0)},
		{"m", "N", "calls per iteration, issued as one group (1)", groupHow, setAgg},
		{"c", "N", "iterations whose data are checked; 0 for none (1)", groupHow, number(func(o *Options) *int { return &o.Check }, 0)},
		{"z", "N", "0: issue all, then wait; 1: wait and barrier after each; 2: wait after each; 3: as 0, and barrier (2)", groupHow, setBlocking},
		{"G", "N", "on a device: capture the iterations as a graph, and launch it N times (0)", groupHow, number(func(o *Options) *int { return &o.Graph }, 0)},
		{"N", "N", "all of it N times over; 0: for ever (1)", groupHow, number(func(o *Options) *int { return &o.Cycles }, 0)},
		{"for", "T", "all of it over and over, for that long: 10m", groupHow, setSoak},
		{"T", "T", "give up when one line takes longer: 90s; 0: never (0)", groupHow, setTimeout},
		{"peer-timeout", "T", "a rank that is silent for so long is lost; 0: never (5s)", groupHow, setPeerTimeout},

		{"backend", "NAME", "engine: " + strings.Join(backendNames, " ") + "; or a comma list to measure in turns (that of the device here; cpu)", groupWho, setBackends},
		{"mem", "KIND", "memory of the buffers: host device managed (the engine's)", groupWho, setMem},
		{"device", "LIST", "devices of a host's ranks, in turn: 0 shares one on purpose (each its own)", groupWho, setDevices},
		{"hints", "LIST", "for NCCL or RCCL: min-ctas=4,max-ctas=16,cta-policy=efficiency,traffic-class=3,net=IB (none)", groupWho, setHints},
		{"R", "N", "1: registered buffers, 2: symmetric windows, for fewer copies (0)", groupWho, setRegister},
		{"u", "N", "buffers that begin N elements off their alignment (0)", groupWho, number(func(o *Options) *int { return &o.Misalign }, 0)},
		{"split", "HOW", "groups that call at the same time: node, mod:N, div:N, mask:N", groupWho, setSplit},
		{"rotate", "N", "N sets of buffers in turn, against warm caches (1)", groupWho, number(func(o *Options) *int { return &o.Rotate }, 1)},
		{"flush", "", "sweep the caches before each iteration, which is then timed alone", groupWho, set(func(o *Options) *bool { return &o.Flush })},

		{"a", "N", "time of 0: rank 0, 1: ranks' average, 2: fastest, 3: slowest (1)", groupStats, setAverage},
		{"I", "", "the iterations' spread, from a pass of its own: i_min i_max i_p99 i_cv%", groupStats, set(func(o *Options) *bool { return &o.Iterations })},
		{"K", "N", "leave its first N iterations out (0)", groupStats, number(func(o *Options) *int { return &o.Skip }, 0)},
		{"S", "", "end each line with the time of day", groupStats, set(func(o *Options) *bool { return &o.Stamp })},
		{"M", "", "what memory the ranks take", groupStats, set(func(o *Options) *bool { return &o.Memory })},
		{"v", "", "end each line with the algorithm that was chosen", groupStats, set(func(o *Options) *bool { return &o.Verbose })},
		{"min-busbw", "X", "the least average bus bandwidth, GB/s", groupStats, bandwidth(func(o *Options) *float64 { return &o.MinBusBW })},
		{"max-p99", "T", "the longest 99th percentile of any line: 500us", groupStats, setMaxP99},
		{"J", "FILE", "write the results as JSON, too", groupStats, file(func(o *Options) *string { return &o.JSON })},
		{"csv", "FILE", "write them as CSV", groupStats, file(func(o *Options) *string { return &o.CSV })},
		{"html", "FILE", "write a report of one file, with curves", groupStats, file(func(o *Options) *string { return &o.HTML })},
		{"svg", "DIR", "write each figure of it as a file", groupStats, file(func(o *Options) *string { return &o.SVG })},
		{"png", "DIR", "the same as PNG (needs chromium, google-chrome or rsvg-convert here)", groupStats, file(func(o *Options) *string { return &o.PNG })},
		{"ceiling", "X", "what the links could carry, GB/s, as a line in it (found out)", groupStats, bandwidth(func(o *Options) *float64 { return &o.Ceiling })},
		{"h", "", "the most used flags; -h all: this text", groupStats, set(func(o *Options) *bool { return &o.Help })},
		{"help", "", "", "", set(func(o *Options) *bool { return &o.Help })},

		{"np", "N", "processes to start here (the cores, at least 2, at most 8)", groupJob, setNP},
		{"t", "N", "ranks per process, as goroutines (1); alone it means -np 1", groupJob, number(func(o *Options) *int { return &o.Threads }, 1)},
		{"hosts", "N", "let them act as N hosts, with TCP between (1)", groupJob, number(func(o *Options) *int { return &o.Hosts }, 1)},
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

func flagNames() []string {
	var names []string
	for _, f := range flags() {
		names = append(names, f.name)
	}
	return names
}
