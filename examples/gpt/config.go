package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/gpt"
)

// config is what the flags say.
type config struct {
	gpt.Config
	tracking
	healing
	np, dp, pp, tp, across, stage, micro int // across: the ranks that share each sequence
	sp, schedule, preset, data           string
	rows, steps, warmup, log, eval       int
	lr, clip                             float64
	seed                                 uint64
	json, svg, save                      string
	every, keep, from                    int // from: the step to go back to; -1: the last one
	resume, recover                      bool
	held                                 holding
	draws                                drawing
	apart                                apart
	experts                              sparse
}

// mostRanks is the most ranks, in all and of each dimension, and micro batches, and mostSize the most of what they
// share: products of these are numbers that can be counted.
const mostRanks, mostSize = 1 << 14, 1 << 30

// drawing is how a sample is drawn.
type drawing struct {
	sample       string // the text to continue
	generate     bool   // that alone, and train nothing
	tokens, topk int
	temperature  float64
}

// presets are the shapes of the talks.
var presets = map[string]gpt.Config{
	"char":     {Context: 128, Width: 128, Heads: 4, Layers: 4},
	"babygpt":  {Context: 256, Width: 384, Heads: 6, Layers: 6},
	"gpt2-85m": {Context: 1024, Width: 768, Heads: 12, Layers: 12, Tied: true},
}

// groups are the flags as -h prints them, behind their titles.
var groups = [][]string{
	{"layout", "np", "dp", "pp", "tp", "sp", "zero", "micro", "schedule", "bf16", "offload", "recompute", "outer"},
	{"tracking", "events", "csv", "timeline", "norms"},
	{"model", "preset", "layers", "heads", "width", "context", "vocab", "tied"},
	{"experts", "experts", "top", "ep", "shared", "balance"},
	{"run", "data", "rows", "steps", "lr", "warmup", "clip", "seed", "eval", "config"},
	{"checkpoints", "save", "every", "keep", "resume", "from", "recover"},
	{"losses", "spares", "mirror"},
	{"sample", "sample", "generate", "tokens", "temperature", "topk"},
	{"output", "log", "json", "svg", "version"},
}

// legend says what a step's line has.
const legend = `loss: nats a token. Seconds: dt the step; of it dtf forward, dtb backward, dto optimizer;
dtc communication, dtx of that not hidden. tps: tokens/s. mfu: % of the cores' peak.
`

const about = `gpt trains a GPT-2 on characters or tokens, on any number of ranks.

  gpt -np 2 -steps 1000 -save run -svg loss.svg   train, and keep checkpoints
  gpt -save run -generate -sample "The light "    continue a text, by the last checkpoint
`

// parse reads the flags. The error says what to change; flag.ErrHelp is printed already.
func parse(args []string, out io.Writer) (*config, error) {
	c := &config{}
	f := flag.NewFlagSet("gpt", flag.ContinueOnError)
	f.IntVar(&c.np, "np", 0, "start this many `ranks` here (default: the ranks that a launcher started, or one)")
	f.IntVar(&c.dp, "dp", 0, "data-parallel `ranks`; 0: as many as the other dimensions leave")
	f.IntVar(&c.pp, "pp", 1, "pipeline `stages`")
	f.IntVar(&c.tp, "tp", 1, "`ranks` that share each layer")
	f.StringVar(&c.sp, "sp", "", "split the sequence; `how`: megatron, over the ranks of -tp; ulysses=N or ring=N, over N ranks beside them")
	f.IntVar(&c.stage, "zero", 0, "ZeRO `stage`: 1 shards optimizer state, 2 gradients too, 3 parameters too")
	f.IntVar(&c.micro, "micro", 1, "micro `batches` per rank and step")
	f.StringVar(&c.schedule, "schedule", "1f1b", "`schedule` of the pipeline: 1f1b or gpipe")
	f.BoolVar(&c.held.bf16, "bf16", false, "parameters and gradients in bfloat16, with float32 masters")
	f.Var(&c.held, "offload", "with -zero 1, 2 or 3: `disk`, or disk=DIRECTORY of a local disk (default: the current one), has AdamW's state and the masters, and at stage 3 parameters and gradients as well")
	f.Var(&c.apart, "outer", "train replicas apart, and average how far they have come: every=`N` steps; also sites=N of several replicas each, fragments=N, delay=N, mix=X, codec=bf16|int8|int4|e4m3|e5m2, eager, mean, stride, lr=X, momentum=X (package outer)")
	c.tracking.flags(f)
	c.healing.flags(f)
	c.experts.flags(f, &c.Sparse)
	f.BoolVar(&c.Tied, "tied", false, "the head uses the embedding of tokens, as gpt2-85m does")
	f.StringVar(&c.save, "save", "", "`directory` for checkpoints; one is written at the end, or after an interrupt")
	f.IntVar(&c.every, "every", 0, "with -save: also write a checkpoint every so many `steps`, while training goes on")
	f.IntVar(&c.keep, "keep", 3, "with -save: how many `checkpoints` to keep")
	f.BoolVar(&c.resume, "resume", false,
		"resume from the last checkpoint in -save's directory, whatever its layout; begin if there is none")
	f.IntVar(&c.from, "from", -1, "with -resume: go back to the checkpoint of this `step`, and remove the later ones; with -generate: take that one")
	f.BoolVar(&c.recover, "recover", false,
		"with -save and -every: if a rank is lost, the others continue from the last checkpoint")
	f.StringVar(&c.preset, "preset", "char",
		"`shape`: char (0.83 M parameters), babygpt (10.7 M), gpt2-85m; the flags below change it")
	f.IntVar(&c.Layers, "layers", 0, "`layers` of the model")
	f.IntVar(&c.Heads, "heads", 0, "attention `heads` per layer")
	f.IntVar(&c.Width, "width", 0, "`elements` of the embedding")
	f.IntVar(&c.Context, "context", 0, "`tokens` per row")
	f.IntVar(&c.Vocab, "vocab", 0, "size of the vocabulary, in `tokens`; 0: as in the data")
	f.StringVar(&c.data, "data", "", "`file` of text, or of nanoGPT's uint16 tokens if its name ends in .bin (default: Newton's Opticks, from the Go distribution)")
	f.IntVar(&c.rows, "rows", 16, "`rows` per step, on all ranks together")
	f.IntVar(&c.steps, "steps", 1000, "`steps` to train")
	f.Float64Var(&c.lr, "lr", 1e-3, "peak learning `rate`; it falls along half a cosine to a tenth")
	f.IntVar(&c.warmup, "warmup", 0, "`steps` over which the learning rate rises")
	f.Float64Var(&c.clip, "clip", 1, "clip gradients to this `norm`; 0: do not clip")
	f.Uint64Var(&c.seed, "seed", 1, "`seed` of weights and data")
	f.IntVar(&c.eval, "eval", 0, "validate on the last tenth of the data every so many `steps`; 0: never")
	f.StringVar(&c.draws.sample, "sample", "", "at the end, continue this `text`")
	f.BoolVar(&c.draws.generate, "generate", false,
		"train nothing: continue -sample's text by the last checkpoint in -save, or that of -from")
	f.IntVar(&c.draws.tokens, "tokens", 200, "how many `tokens` the sample has")
	f.Float64Var(&c.draws.temperature, "temperature", .8,
		"divide the sample's logits by this `number`: below 1 likely tokens become likelier; 0: only the likeliest")
	f.IntVar(&c.draws.topk, "topk", 0, "draw the sample from the `N` likeliest tokens; 0: from all")
	file := f.String("config", "", "`file` of flags, a line each: steps = 1000; the command line comes first")
	version := f.Bool("version", false, "say which version this is")
	f.IntVar(&c.log, "log", 10, "print a line every so many `steps`")
	f.StringVar(&c.json, "json", "", "`file` for metrics, one line per step")
	f.StringVar(&c.svg, "svg", "", "`file` for a picture of the loss")
	if len(args) == 1 && (args[0] == "help" || args[0] == "version") {
		args = []string{"-" + args[0]}
	}
	behind := "\nthe line of a step:\n  " + strings.ReplaceAll(strings.TrimSpace(legend), "\n", "\n  ") + "\n"
	if err := job.Parse(f, args, out, about, groups, behind); err != nil {
		return nil, err
	}
	if *version {
		fmt.Fprintf(out, "gpt of goccl %s, %s %s/%s\n", ccl.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil, flag.ErrHelp
	}
	if *file != "" {
		text, err := files.Read(*file, 1<<20)
		if err != nil {
			return nil, fmt.Errorf("-config: %w", err)
		}
		if err := configure(f, *file, text); err != nil {
			return nil, err
		}
	}
	p, ok := presets[c.preset]
	if !ok {
		return nil, fmt.Errorf("-preset %s: no such model; there are char, babygpt and gpt2-85m", c.preset)
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for name, v := range map[string][2]*int{"layers": {&c.Layers, &p.Layers}, "heads": {&c.Heads, &p.Heads},
		"width": {&c.Width, &p.Width}, "context": {&c.Context, &p.Context}} {
		if !set[name] {
			*v[0] = *v[1]
		}
	}
	if !set["tied"] {
		c.Tied = p.Tied
	}
	return c, c.check(f, set)
}

// check says what is wrong with flags that do not depend on the number of ranks.
func (c *config) check(f *flag.FlagSet, set map[string]bool) error {
	counts := []string{"pp", "tp", "micro", "layers", "heads", "width", "context", "rows", "steps", "log", "keep",
		"tokens", "mirror", "top", "ep"}
	if set["np"] {
		counts = append(counts, "np")
	}
	rest := []string{"dp", "vocab", "warmup", "eval", "every", "topk", "spares", "experts"}
	if err := cmp.Or(job.AtLeast(f, 1, counts...), job.AtLeast(f, 0, rest...), c.sampling(set),
		job.AtMost(f, mostRanks, "np", "dp", "pp", "tp", "ep", "spares", "micro"),
		job.AtMost(f, mostSize, "layers", "heads", "width", "context", "rows", "experts"),
		job.Apart(f, "json", "svg", "csv", "timeline")); err != nil {
		return err
	}
	if err := c.sequence(); err != nil {
		return err
	}
	switch {
	case c.stage < 0 || c.stage > 3:
		return fmt.Errorf("-zero %d: the stages are 0 to 3", c.stage)
	case c.sp == "megatron" && c.tp == 1:
		return errors.New("-sp megatron splits the sequence over the ranks of -tp: give -tp, too")
	case c.schedule != "1f1b" && c.schedule != "gpipe":
		return fmt.Errorf("-schedule %s: no such schedule; there are 1f1b and gpipe", c.schedule)
	case !(c.lr > 0 && c.clip >= 0) || math.IsInf(c.lr+c.clip, 0): // NaN is neither
		return fmt.Errorf("-lr %v -clip %v: -lr must be greater than 0, -clip at least 0, and both must be finite", c.lr,
			c.clip)
	case !c.draws.generate && c.divides() != nil:
		return c.divides()
	case c.save == "" && (c.every > 0 || c.resume || c.recover):
		return errors.New("-every, -resume and -recover need -save, the directory of checkpoints")
	case set["from"] && (!c.resume && !c.draws.generate || c.from < 0):
		return fmt.Errorf("-from %d goes back to a step: it takes -resume or -generate, and a step from 0 on", c.from)
	case c.held.dir != "" && c.stage == 0:
		return errors.New("-offload disk needs -zero 1, 2 or 3")
	case c.held.dir != "" && c.Sparse.Experts > 0:
		return errors.New("experts are in memory: leave -offload disk or -experts out")
	case c.held.dir != "" && c.apart.on():
		return errors.New("-outer keeps a copy of the parameters in memory: leave -offload disk or -outer out")
	case c.recover && c.every == 0:
		return errors.New("-recover continues from the last checkpoint: give -every, which says how often one is written")
	}
	if c.apart.on() && c.norms {
		return errors.New("-norms compares the gradients of all ranks, and with -outer each site has its own: leave one of them out")
	}
	if err := cmp.Or(c.replaceable(), c.experts.check(c, set)); err != nil || c.np == 0 {
		return err
	}
	return c.place(c.np)
}

// replaceable says which flags need what is in the memory of a rank alone, and would be wrong once it is replaced.
func (c *config) replaceable() error {
	for _, f := range []struct {
		name string
		set  bool
	}{{"csv", c.files.csv != ""}, {"timeline", c.files.timeline != ""}, {"svg", c.svg != ""}, {"norms", c.norms}} {
		if c.spares > 0 && f.set {
			return fmt.Errorf("-%s begins anew when a rank is replaced: with spares leave it out; -json has all steps", f.name)
		}
	}
	if c.spares > 0 && c.held.dir != "" {
		return errors.New("spares take over a state that is mirrored in memory: leave -offload disk or the spares out")
	}
	return nil
}

// divides says what of the layout does not divide the model.
func (c *config) divides() error {
	switch {
	case c.Width%c.Heads != 0:
		return fmt.Errorf("-heads %d does not divide -width %d; -heads %d does", c.Heads, c.Width, nearest(c.Width, c.Heads))
	case c.Heads%c.tp != 0:
		return fmt.Errorf("-tp %d does not divide %d heads; -tp %d does", c.tp, c.Heads, nearest(c.Heads, c.tp))
	case c.Layers%c.pp != 0:
		return fmt.Errorf("-pp %d does not divide %d layers; -pp %d does", c.pp, c.Layers, nearest(c.Layers, c.pp))
	}
	return nil
}

// sampling says what is wrong with the flags of a sample.
func (c *config) sampling(set map[string]bool) error {
	const least = 1e-3
	if t := c.draws.temperature; !(t == 0 || t >= least) || math.IsInf(t, 0) {
		return fmt.Errorf("-temperature %v: give 0, which takes the likeliest token, or at least %v", t, least)
	}
	for _, name := range []string{"generate", "tokens", "temperature", "topk"} {
		if set[name] && c.draws.sample == "" && (name != "generate" || c.draws.generate) {
			return fmt.Errorf("-%s is about a sample: give -sample, the text that it continues", name)
		}
	}
	if !c.draws.generate {
		return nil
	}
	if c.save == "" {
		return errors.New("-generate takes a checkpoint: give -save, the directory that has it")
	}
	for _, out := range [][]string{
		{"has the model of the checkpoint", "preset", "layers", "heads", "width", "context", "vocab", "tied", "data",
			"experts", "top", "shared"},
		{"trains nothing", "resume", "every", "recover", "json", "svg", "events", "csv", "timeline", "norms", "recompute",
			"eval", "sp", "micro", "spares", "mirror", "outer", "balance", "offload"},
	} {
		for _, name := range out[1:] {
			if set[name] {
				return fmt.Errorf("-generate %s: leave -%s out", out[0], name)
			}
		}
	}
	return nil
}

// sequence reads -sp.
func (c *config) sequence() error {
	c.across = 1
	how, n, several := strings.Cut(c.sp, "=")
	if c.sp == "" || c.sp == "megatron" {
		return nil
	}
	if k, err := strconv.Atoi(n); how != "ulysses" && how != "ring" || !several || err != nil || k < 1 || k > mostRanks {
		return fmt.Errorf("-sp %s: give megatron, ulysses=N or ring=N, with N ranks for each sequence", c.sp)
	} else if c.Context%k != 0 {
		return fmt.Errorf("-sp %s does not divide -context %d; %s=%d does", c.sp, c.Context, how, nearest(c.Context, k))
	} else if h := c.Heads / c.tp; how == "ulysses" && h > 0 && h%k != 0 {
		return fmt.Errorf("-sp %s does not divide the %s of a rank; ulysses=%d does, and ring=%d splits no heads", c.sp,
			count(h, "head", "s"), nearest(h, k), k)
	} else {
		c.sp, c.across = how, k
	}
	return nil
}

// fit is the most ranks, n at most, that the layout can use with the same rows a step; 0 if there are none.
func (c *config) fit(n int) int {
	inner := c.pp * c.tp * c.across
	for dp := n / inner; dp > 0; dp-- {
		if c.rows%(dp*c.micro) == 0 && dp%max(c.apart.asked, 1) == 0 && dp%c.experts.ranks == 0 {
			return dp * inner
		}
	}
	return 0
}

// place fills in dp on n ranks, and says what does not divide.
func (c *config) place(n int) error {
	inner := c.pp * c.tp * c.across
	if c.draws.generate { // each replica computes the one row
		c.rows = max(n/inner, 1)
	}
	switch {
	case n < inner:
		return fmt.Errorf("-pp %d -tp %d with %s per sequence does not fit %s: start %d", c.pp, c.tp,
			count(c.across, "rank", "s"), count(n, "rank", "s"), inner)
	case n%inner != 0:
		return fmt.Errorf("-pp %d -tp %d with %s per sequence does not fit %s: start %d, or %d", c.pp, c.tp,
			count(c.across, "rank", "s"), count(n, "rank", "s"), n/inner*inner, (n/inner+1)*inner)
	case c.dp == 0:
		c.dp = n / inner
	case c.dp*inner != n:
		return fmt.Errorf("-dp %d times %s per replica is %d, not %d: -dp %d fits; or leave -dp out", c.dp,
			count(inner, "rank", "s"), c.dp*inner, n, n/inner)
	}
	if n := c.experts.ranks; c.dp%n != 0 {
		return fmt.Errorf("-ep %d does not divide %s; -ep %d does", n, count(c.dp, "replica", "s"),
			nearest(common(c.dp, c.Sparse.Experts), n))
	}
	if err := c.apart.place(c.dp, c.draws.generate); err != nil {
		return err
	}
	if parts := c.dp * c.micro; c.rows%parts != 0 {
		return fmt.Errorf("-rows %d does not divide among -dp %d x -micro %d; -rows %d does", c.rows, c.dp, c.micro,
			max(1, (c.rows+parts/2)/parts)*parts)
	}
	if tokens := c.rows / c.dp / c.micro * c.Context; c.sp == "megatron" && tokens%c.tp != 0 {
		return fmt.Errorf("-sp megatron: %d tokens of a micro batch do not divide among -tp %d", tokens, c.tp)
	}
	return nil
}

// nearest is the divisor of n that is nearest to k; the smaller one of two.
func nearest(n, k int) int {
	k = min(k, n)
	for away := 0; ; away++ {
		if d := k - away; d > 0 && n%d == 0 {
			return d
		}
		if d := k + away; d <= n && n%d == 0 {
			return d
		}
	}
}

// common is the greatest number that divides both; of 0 and a, a.
func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (h *healing) flags(f *flag.FlagSet) {
	f.IntVar(&h.spares, "spares", 0, "start this many more `ranks`, which wait to take the place of one that is lost (default: as the launcher says)")
	f.IntVar(&h.mirror, "mirror", 1, "with -spares: keep each rank's state in the memory of another rank as well, every so many `steps`")
}
