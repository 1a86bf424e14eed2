package loop

import (
	"errors"
	"flag"
	"fmt"
	"math"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/optim"
)

// Flags are what the command line of a program that trains a model says.
type Flags struct {
	// NP is how many ranks the program starts itself; 0: none.
	NP int
	// Backend is that of ccl.Options.
	Backend string
	// Rows are those of a step, on all ranks together.
	Rows int
	// LR is the peak learning rate, to which it rises over Warmup steps.
	LR     float64
	Warmup int
	// Fit, Machine and Run have what other flags say; the program sets the rest.
	Fit     fit.Options
	Machine machine.Options
	Run     Options
}

// Define adds the flags to f. Values that c has already are the defaults.
func (c *Flags) Define(f *flag.FlagSet) {
	f.IntVar(&c.NP, "np", c.NP, "start this many `ranks` here (default: the ranks that a launcher started, or one)")
	f.StringVar(&c.Backend, "backend", c.Backend,
		"what moves data between ranks: nccl, or `cpu` (default: nccl if each rank has a GPU)")
	f.IntVar(&c.Rows, "rows", c.Rows, "`rows` per step, on all ranks together")
	f.Float64Var(&c.LR, "lr", c.LR, "peak learning `rate`; with -warmup it rises first, and falls along half a cosine to a tenth")
	f.IntVar(&c.Warmup, "warmup", c.Warmup, "`steps` over which the learning rate rises; 0: it stays as it is")
	f.IntVar(&c.Fit.Stage, "zero", c.Fit.Stage,
		"ZeRO `stage`: 1 shards optimizer state, 2 gradients too, 3 parameters too")
	f.IntVar(&c.Fit.Micro, "micro", max(c.Fit.Micro, 1), "micro `batches` per rank and step")
	f.BoolVar(&c.Fit.BF16, "bf16", c.Fit.BF16,
		"products and activations in bfloat16, with float32 parameters, or masters at -zero 1 to 3")
	f.Float64Var(&c.Fit.Clip, "clip", c.Fit.Clip, "clip gradients to this `norm`; 0: do not clip")
	f.Uint64Var(&c.Fit.Seed, "seed", c.Fit.Seed, "`seed` of weights and data")
	f.StringVar(&c.Machine.Plugin, "plugin", c.Machine.Plugin, "`file` of the PJRT plugin (default: $GOCCL_XLA_PLUGIN)")
	f.StringVar(&c.Machine.Client, "options", c.Machine.Client, "the plugin's client `options`: name=value,name=value")
	f.StringVar(&c.Machine.Flags, "flags", c.Machine.Flags, "XLA's `flags` for all programs: name=value,name=value")
	f.BoolVar(&c.Machine.Share, "share", c.Machine.Share, "rank 0 compiles, and the others load what it has compiled")
	f.IntVar(&c.Run.Steps, "steps", c.Run.Steps, "`steps` to train")
	f.IntVar(&c.Run.Log, "log", c.Run.Log, "print a line every so many `steps`; nothing waits for the device between")
	f.StringVar(&c.Run.JSON, "json", c.Run.JSON, "`file` for metrics, one line per line that is printed")
	f.StringVar(&c.Run.SVG, "svg", c.Run.SVG, "`file` for a picture of the loss")
	f.StringVar(&c.Run.Save, "save", c.Run.Save, "`directory` for checkpoints; one is written at the end, or after an interrupt")
	f.IntVar(&c.Run.Every, "every", c.Run.Every,
		"with -save: also write a checkpoint every so many `steps`, while training goes on; a multiple of -log")
	f.IntVar(&c.Run.Keep, "keep", max(c.Run.Keep, 3), "with -save: how many `checkpoints` to keep")
	f.BoolVar(&c.Run.Resume, "resume", c.Run.Resume,
		"resume from the last checkpoint in -save's directory, whatever its layout")
}

// Check says what is wrong with c, as far as it does not depend on the number of ranks or on the device.
func (c *Flags) Check() error {
	switch clip, r := c.Fit.Clip, &c.Run; {
	case c.Fit.Stage < 0 || c.Fit.Stage > 3:
		return fmt.Errorf("-zero %d: the stages are 0 to 3", c.Fit.Stage)
	case !(c.LR > 0 && clip >= 0) || math.IsInf(c.LR+clip, 0): // NaN is neither
		return fmt.Errorf("-lr %v -clip %v: -lr must be greater than 0, -clip at least 0, and both must be finite", c.LR, clip)
	case c.Rows < 1 || c.Fit.Micro < 1 || r.Log < 0:
		return fmt.Errorf("-rows %d -micro %d -log %d: give at least 1", c.Rows, c.Fit.Micro, r.Log)
	case c.Warmup < 0 || r.Every < 0:
		return fmt.Errorf("-warmup %d -every %d: both must be at least 0", c.Warmup, r.Every)
	case r.JSON != "" && r.SVG != "" && files.Same(r.JSON, r.SVG):
		return fmt.Errorf("-svg %s: -json writes that file; give another name", r.SVG)
	case r.Save == "" && (r.Every > 0 || r.Resume):
		return errors.New("-every and -resume need -save, the directory of checkpoints")
	case r.Every%max(r.Log, 1) != 0:
		return fmt.Errorf("-every %d: it must be a multiple of -log %d, when losses are read", r.Every, r.Log)
	}
	return nil
}

// Rate is the learning rate of a step, as -lr and -warmup say.
func (c *Flags) Rate(step int) float64 {
	if c.Warmup == 0 {
		return c.LR
	}
	return optim.Cosine(step, c.Warmup, c.Run.Steps, c.LR, c.LR/10)
}

// Place gives each of n ranks its part of the rows: Fit.Rows. Fit.Deal then deals them.
func (c *Flags) Place(n int) error {
	const most = 1 << 30 // so that the product is a number
	if n < 1 || c.Fit.Micro < 1 || c.Fit.Micro > most {
		return fmt.Errorf("%d ranks x -micro %d: give at least one of each, and -micro at most %d", n, c.Fit.Micro, most)
	}
	parts := n * c.Fit.Micro
	if c.Rows%parts != 0 {
		return fmt.Errorf("-rows %d does not divide among %d ranks x -micro %d; -rows %d does", c.Rows, n, c.Fit.Micro,
			max(1, (c.Rows+parts/2)/parts)*parts)
	}
	c.Fit.Rows = c.Rows / parts
	return nil
}
