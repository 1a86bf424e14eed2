package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/train/fit/loop"
	"github.com/goccl/goccl/xla/nn/models"
)

// config is what the flags say.
type config struct {
	loop.Flags
	model                                    models.GPT2
	pace                                     bool
	preset, attn, residual, data, export, hf string
	device                                   int // -1: the rank's own
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
	c, given := &config{}, models.GPT2{}
	c.Rows, c.LR, c.Fit.Clip, c.Fit.Seed, c.Run.Steps, c.Run.Log = 8, 6e-4, 1, 1337, 100, 10
	f := flag.NewFlagSet("gpt2", flag.ContinueOnError)
	c.Define(f)
	f.BoolVar(&c.Fit.Units, "parts", false, "a program for each kind of layer at -zero 0, too; the other stages always have them")
	f.BoolVar(&c.Fit.Offload, "offload", false,
		"with -zero or -parts: masters and AdamW's moments in memory of the host, which updates them (ZeRO-Offload)")
	f.BoolVar(&c.Fit.Recompute, "recompute", false,
		"keep the inputs of layers only, and compute each once more for its backward pass: less memory, a third more work; "+
			"-parts and -zero 1 to 3 always do")
	f.StringVar(&c.residual, "residual", "f32", "`type` of what goes from layer to layer: f32, or bf16 with -bf16")
	f.StringVar(&c.attn, "attn", "", "`attention`: softmax, or cudnn (default: cudnn on CUDA where it fits)")
	f.StringVar(&c.preset, "preset", "char", "`shape`: tiny, char, gpt2 (124 M parameters); the flags below change it")
	f.IntVar(&given.Layers, "layers", 0, "`layers` of the model")
	f.IntVar(&given.Heads, "heads", 0, "attention `heads` per layer")
	f.IntVar(&given.Width, "width", 0, "`elements` of the embedding")
	f.IntVar(&given.Positions, "context", 0, "`tokens` per row")
	f.IntVar(&given.Vocab, "vocab", 0, "size of the vocabulary, in `tokens`")
	f.StringVar(&c.data, "data", "", "`file` of text, as bytes, or of nanoGPT's uint16 tokens if its name ends in .bin (default: made up)")
	f.IntVar(&c.device, "device", -1, "`number` of this rank's GPU (default: the rank's own among those of its host); with -backend nccl")
	f.StringVar(&c.hf, "hf", "", "begin with the GPT-2 in this `directory`, as Hugging Face saves it: config.json, and model.safetensors; it says what the model is")
	f.BoolVar(&c.Run.Recover, "recover", false, "with -save and -every: if a rank is lost, the others go on from the last checkpoint")
	f.BoolVar(&c.Run.Wait, "wait", false, "wait for every step, and for gradients before they are averaged")
	f.StringVar(&c.export, "export", "", "write the initial parameters and all steps' tokens to this `file`, and end")
	f.BoolVar(&c.pace, "pace", false, "read a line from the standard input before each -log steps, to run in turns with another program")
	err := job.Parse(f, args, out, "gpt2 trains a GPT-2 with XLA, on a GPU or a CPU, on any number of ranks.\n", groups, "")
	if err != nil {
		return c, err
	}
	var ok bool
	if c.model, ok = presets[c.preset]; !ok {
		return c, fmt.Errorf("-preset %s: no such model; there are tiny, char and gpt2", c.preset)
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if c.hf != "" {
		for _, name := range []string{"preset", "layers", "heads", "width", "context", "vocab", "export"} {
			if set[name] {
				return c, fmt.Errorf("-%s does not go with -hf, which says what the model is", name)
			}
		}
		if c.model, err = describe(c.hf); err != nil {
			return c, fmt.Errorf("-hf: %w", err)
		}
	}
	m := &c.model
	for name, v := range map[string][2]*int{"layers": {&m.Layers, &given.Layers}, "heads": {&m.Heads, &given.Heads},
		"width": {&m.Width, &given.Width}, "context": {&m.Positions, &given.Positions}, "vocab": {&m.Vocab, &given.Vocab}} {
		if set[name] {
			*v[0] = *v[1]
		}
	}
	return c, c.check(f, set)
}

// viewed is what widths are a multiple of: XLA reads parameters in place that begin at multiples of 64 bytes.
const viewed = 32

// check says what is wrong with the flags, as far as it does not depend on the number of ranks or on the device.
func (c *config) check(f *flag.FlagSet, set map[string]bool) error {
	counts := []string{"micro", "rows", "steps", "log", "keep"}
	var vocab []string
	for _, name := range []string{"np", "layers", "heads", "width", "context"} {
		if set[name] {
			counts = append(counts, name)
		}
	}
	if set["vocab"] {
		vocab = []string{"vocab"}
	}
	for least, names := range [][]string{{"warmup", "every"}, counts, vocab} {
		if err := job.AtLeast(f, least, names...); err != nil {
			return err
		}
	}
	if err := c.Flags.Check(); err != nil {
		return err
	}
	switch {
	case c.model.Width%c.model.Heads != 0:
		return fmt.Errorf("-heads %d does not divide -width %d", c.model.Heads, c.model.Width)
	case c.model.Width%viewed != 0:
		return fmt.Errorf("-width %d: it must be a multiple of %d", c.model.Width, viewed)
	case c.attn != "" && c.attn != "softmax" && c.attn != "cudnn":
		return fmt.Errorf("-attn %s: there are softmax and cudnn", c.attn)
	case c.attn == "cudnn" && !c.fits():
		return fmt.Errorf("-attn cudnn: it needs -bf16, and heads of 64 or 128 elements; these have %d", c.model.Width/c.model.Heads)
	case c.residual != "f32" && (c.residual != "bf16" || !c.Fit.BF16):
		return fmt.Errorf("-residual %s: there are f32, and bf16 with -bf16", c.residual)
	case c.Fit.Offload && c.alone():
		return errors.New("-offload needs -zero 1, 2 or 3, or -parts")
	case c.Run.Recover && c.Run.Every == 0:
		return errors.New("-recover needs -save and -every: checkpoints to go on from")
	case c.device < -1:
		return fmt.Errorf("-device %d: devices count from 0", c.device)
	case c.export != "" && c.NP > 1:
		return errors.New("-export is for one rank")
	case c.NP > 0:
		return c.Place(c.NP)
	}
	return nil
}

// alone reports whether one rank exchanges nothing, not even with itself.
func (c *config) alone() bool { return c.Fit.Stage == 0 && !c.Fit.Units }

// fits reports whether cuDNN has attention for the model.
func (c *config) fits() bool {
	size := c.model.Width / c.model.Heads
	return c.Fit.BF16 && (size == 64 || size == 128)
}
