package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/xla/hlo"
)

// config is what the flags say.
type config struct {
	shape
	np, stage, rows, micro, ranks  int
	steps, warmup, log             int
	lr, clip                       float64
	seed                           uint64
	bf16, share, parts, pace, wait bool
	preset, attn, residual, data   string
	plugin, options, flags, export string
	backend                        string
	save, hf                       string
	every, keep                    int
	resume, recover, offload       bool
	device                         int // -1: the rank\'s own
	json, svg                      string
}

// presets are shapes of models.
var presets = map[string]shape{
	"tiny": {context: 32, width: 64, heads: 2, layers: 2, vocab: 256},
	"char": {context: 128, width: 128, heads: 4, layers: 4, vocab: 256},
	"gpt2": {context: 1024, width: 768, heads: 12, layers: 12, vocab: 50304},
}

// groups are the flags as -h prints them, behind their titles.
var groups = [][]string{
	{"layout", "np", "backend", "device", "zero", "parts", "offload", "micro", "recompute", "bf16", "residual", "attn"},
	{"model", "preset", "layers", "heads", "width", "context", "vocab"},
	{"run", "data", "rows", "steps", "lr", "warmup", "clip", "seed"},
	{"xla", "plugin", "options", "flags", "share"},
	{"checkpoints", "hf", "save", "every", "keep", "resume", "recover"},
	{"output", "log", "wait", "json", "svg", "export", "pace"},
}

// parse reads the flags. The error says what to change; flag.ErrHelp is printed already.
func parse(args []string, out io.Writer) (*config, error) {
	c := &config{}
	f := flag.NewFlagSet("gpt2", flag.ContinueOnError)
	f.IntVar(&c.np, "np", 0, "start this many `ranks` here (default: the ranks that a launcher started, or one)")
	f.IntVar(&c.stage, "zero", 0, "ZeRO `stage`: 1 shards optimizer state, 2 gradients too, 3 parameters too")
	f.BoolVar(&c.parts, "parts", false,
		"a program for each kind of layer at -zero 0, too; the other stages always have them")
	f.BoolVar(&c.offload, "offload", false,
		"with -zero or -parts: masters and AdamW's moments in memory of the host, which updates them (ZeRO-Offload)")
	f.IntVar(&c.micro, "micro", 1, "micro `batches` per rank and step")
	f.BoolVar(&c.again, "recompute", false,
		"keep the inputs of layers only, and compute each once more for its backward pass: less memory, a third more work; "+
			"-parts and -zero 1 to 3 always do")
	f.BoolVar(&c.bf16, "bf16", false, "products and activations in bfloat16, with float32 parameters, or masters at -zero 1 to 3")
	f.StringVar(&c.residual, "residual", "f32", "`type` of what goes from layer to layer: f32, or bf16 with -bf16")
	f.StringVar(&c.attn, "attn", "", "`attention`: softmax, or cudnn (default: cudnn on CUDA where it fits)")
	f.StringVar(&c.preset, "preset", "char", "`shape`: tiny, char, gpt2 (124 M parameters); the flags below change it")
	f.IntVar(&c.layers, "layers", 0, "`layers` of the model")
	f.IntVar(&c.heads, "heads", 0, "attention `heads` per layer")
	f.IntVar(&c.width, "width", 0, "`elements` of the embedding")
	f.IntVar(&c.context, "context", 0, "`tokens` per row")
	f.IntVar(&c.vocab, "vocab", 0, "size of the vocabulary, in `tokens`")
	f.StringVar(&c.data, "data", "", "`file` of text, as bytes, or of nanoGPT's uint16 tokens if its name ends in .bin (default: made up)")
	f.IntVar(&c.rows, "rows", 8, "`rows` per step, on all ranks together")
	f.IntVar(&c.steps, "steps", 100, "`steps` to train")
	f.Float64Var(&c.lr, "lr", 6e-4, "peak learning `rate`; with -warmup it rises first, and falls along half a cosine to a tenth")
	f.IntVar(&c.warmup, "warmup", 0, "`steps` over which the learning rate rises; 0: it stays as it is")
	f.Float64Var(&c.clip, "clip", 1, "clip gradients to this `norm`; 0: do not clip")
	f.Uint64Var(&c.seed, "seed", 1337, "`seed` of weights and data")
	f.StringVar(&c.backend, "backend", "",
		"what moves data between ranks: nccl, or `cpu` (default: nccl if each rank has a GPU)")
	f.IntVar(&c.device, "device", -1, "`number` of this rank's GPU (default: the rank's own among those of its host); with -backend nccl")
	f.StringVar(&c.plugin, "plugin", "", "`file` of the PJRT plugin (default: $GOCCL_XLA_PLUGIN)")
	f.StringVar(&c.options, "options", "", "the plugin's client `options`: name=value,name=value")
	f.StringVar(&c.flags, "flags", "", "XLA's `flags` for all programs: name=value,name=value")
	f.BoolVar(&c.share, "share", false, "rank 0 compiles, and the others load what it has compiled")
	f.StringVar(&c.hf, "hf", "", "begin with the GPT-2 in this `directory`, as Hugging Face saves it: config.json, and model.safetensors; it says what the model is")
	f.StringVar(&c.save, "save", "", "`directory` for checkpoints; one is written at the end, or after an interrupt")
	f.IntVar(&c.every, "every", 0, "with -save: also write a checkpoint every so many `steps`, while training goes on; a multiple of -log")
	f.IntVar(&c.keep, "keep", 3, "with -save: how many `checkpoints` to keep")
	f.BoolVar(&c.resume, "resume", false, "resume from the last checkpoint in -save's directory, whatever its layout")
	f.BoolVar(&c.recover, "recover", false,
		"with -save and -every: if a rank is lost, the others go on from the last checkpoint")
	f.IntVar(&c.log, "log", 10, "print a line every so many `steps`; nothing waits for the device between")
	f.BoolVar(&c.wait, "wait", false, "wait for every step, and for gradients before they are averaged")
	f.StringVar(&c.json, "json", "", "`file` for metrics, one line per line that is printed")
	f.StringVar(&c.svg, "svg", "", "`file` for a picture of the loss")
	f.StringVar(&c.export, "export", "", "write the initial parameters and all steps' tokens to this `file`, and end")
	f.BoolVar(&c.pace, "pace", false, "read a line from the standard input before each -log steps, to run in turns with another program")
	if err := job.Parse(f, args, out, "gpt2 trains a GPT-2 with XLA, on a GPU or a CPU, on any number of ranks.\n",
		groups, ""); err != nil {
		return nil, err
	}
	p, ok := presets[c.preset]
	if !ok {
		return nil, fmt.Errorf("-preset %s: no such model; there are tiny, char and gpt2", c.preset)
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if c.hf != "" {
		for _, name := range []string{"preset", "layers", "heads", "width", "context", "vocab", "export"} {
			if set[name] {
				return nil, fmt.Errorf("-%s does not go with -hf, which says what the model is", name)
			}
		}
		var err error
		if p, err = describe(c.hf); err != nil {
			return nil, fmt.Errorf("-hf: %w", err)
		}
		c.openAI = true
	}
	for name, v := range map[string][2]*int{"layers": {&c.layers, &p.layers}, "heads": {&c.heads, &p.heads},
		"width":   {&c.width, &p.width},
		"context": {&c.context, &p.context}, "vocab": {&c.vocab, &p.vocab}} {
		if !set[name] {
			*v[0] = *v[1]
		}
	}
	return c, c.check(f, set)
}

// viewed is what widths are a multiple of: XLA reads parameters in place that begin at multiples of 64 bytes.
const viewed = 32

// check says what is wrong with the flags, as far as it does not depend on the number of ranks or on the device.
func (c *config) check(f *flag.FlagSet, set map[string]bool) error {
	counts := []string{"micro", "layers", "heads", "width", "context", "rows", "steps", "log", "keep"}
	if set["np"] {
		counts = append(counts, "np")
	}
	for least, names := range [][]string{{"warmup", "every"}, counts, {"vocab"}} {
		if err := job.AtLeast(f, least, names...); err != nil {
			return err
		}
	}
	c.act, c.res = hlo.F32, hlo.F32
	if c.bf16 {
		c.act = hlo.BF16
	}
	switch {
	case c.stage < 0 || c.stage > 3:
		return fmt.Errorf("-zero %d: the stages are 0 to 3", c.stage)
	case !(c.lr > 0 && c.clip >= 0) || math.IsInf(c.lr+c.clip, 0): // NaN is neither
		return fmt.Errorf("-lr %v -clip %v: -lr must be greater than 0, -clip at least 0, and both must be finite", c.lr,
			c.clip)
	case c.width%c.heads != 0:
		return fmt.Errorf("-heads %d does not divide -width %d", c.heads, c.width)
	case c.width%viewed != 0:
		return fmt.Errorf("-width %d: it must be a multiple of %d", c.width, viewed)
	case c.attn != "" && c.attn != "softmax" && c.attn != "cudnn":
		return fmt.Errorf("-attn %s: there are softmax and cudnn", c.attn)
	case c.attn == "cudnn" && !c.fits():
		return fmt.Errorf("-attn cudnn: it needs -bf16, and heads of 64 or 128 elements; these have %d", c.width/c.heads)
	case c.residual != "f32" && (c.residual != "bf16" || !c.bf16):
		return fmt.Errorf("-residual %s: there are f32, and bf16 with -bf16", c.residual)
	case c.save == "" && (c.every > 0 || c.resume):
		return errors.New("-every and -resume need -save, the directory of checkpoints")
	case c.offload && c.alone():
		return errors.New("-offload needs -zero 1, 2 or 3, or -parts")
	case c.recover && c.every == 0:
		return errors.New("-recover needs -save and -every: checkpoints to go on from")
	case c.every%c.log != 0:
		return fmt.Errorf("-every %d: it must be a multiple of -log %d, when losses are read", c.every, c.log)
	case c.device < -1:
		return fmt.Errorf("-device %d: devices count from 0", c.device)
	case c.export != "" && c.np > 1:
		return errors.New("-export is for one rank")
	}
	c.res = hlo.Type(c.residual)
	if c.np > 0 {
		return c.place(c.np)
	}
	return nil
}

// alone reports whether one rank exchanges nothing, not even with itself.
func (c *config) alone() bool { return c.stage == 0 && !c.parts }

// fits reports whether cuDNN has attention for the model.
func (c *config) fits() bool {
	size := c.width / c.heads
	return c.bf16 && (size == 64 || size == 128)
}

// place gives n ranks their rows.
func (c *config) place(n int) error {
	if parts := n * c.micro; c.rows%parts != 0 {
		return fmt.Errorf("-rows %d does not divide among %d ranks x -micro %d; -rows %d does", c.rows, n, c.micro,
			max(1, (c.rows+parts/2)/parts)*parts)
	}
	c.ranks = n
	return nil
}

// batch is the rows of one micro batch of one rank.
func (c *config) batch() int { return c.rows / c.ranks / c.micro }
