// Command gpt2 trains nanoGPT's GPT-2 with XLA, on NVIDIA's GPUs or on a CPU, in one Go binary:
//
//	go build -tags xla,nccl ./examples/gpt2
//	GOCCL_XLA_PLUGIN=.../jax_plugins/xla_cuda13/xla_cuda_plugin.so ./gpt2 -preset gpt2 -bf16
//	./gpt2 -np 2 -zero 1 -plugin .../pjrt_c_api_cpu_plugin.so
//
// The model is one of package xla/nn/models, and package train/fit trains it. A rank has one
// device, which its Comm has chosen.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/loop"
	"github.com/goccl/goccl/train/fit/machine"
)

func main() {
	out := &job.Output{W: os.Stdout}
	c, err := parse(os.Args[1:], out)
	job.Main("gpt2", c.NP, c.Run.Recover, err, out, func(ctx context.Context) error {
		stop := job.Signals() // the first ends the run after the step under way
		return join(ctx, c, &run{stop: stop, in: os.Stdin, out: out})
	})
}

// join is one rank from Join to Close.
func join(ctx context.Context, c *config, r *run) error {
	o := &ccl.Options{Backend: c.Backend}
	if c.device >= 0 {
		o.Device = &c.device
	}
	if launch, err := boot.Detect(os.Getenv); err == nil && launch.Launcher == "none" && c.alone() {
		o = &ccl.Options{Backend: "cpu"} // nothing is exchanged, so no library need start
	}
	world, err := ccl.Join(ctx, o)
	if err != nil {
		return err
	}
	world, err = r.train(ctx, world, c)
	if err == nil && world.Rank() == 0 {
		err = job.Done()
	}
	return errors.Join(err, world.Close())
}

// run is one rank's run.
type run struct {
	loop loop.Run
	stop <-chan os.Signal
	in   io.Reader // -pace's
	out  io.Writer // what rank 0 says
}

// train trains on the ranks of world, and with -recover on those that are left. It returns the last Comm.
func (r *run) train(ctx context.Context, world *ccl.Comm, c *config) (*ccl.Comm, error) {
	o := &r.loop.O
	*o = c.Run
	o.Rate, o.Out, o.Stop, o.Flops, o.Tokens = c.Rate, r.out, r.stop, c.flops(), c.Rows*c.model.Positions
	o.State, o.Check = func() any { return progress{c.Rows, c.model.Heads, c.Fit.Seed} }, c.resumes
	if c.pace {
		o.Pace = bufio.NewReader(r.in)
	}
	return r.loop.Keep(ctx, world, loop.Divide(c.Rows, c.Fit.Micro), func(ctx context.Context, world *ccl.Comm) error {
		return r.steps(ctx, world, c)
	})
}

// steps trains on the ranks of one Comm.
func (r *run) steps(ctx context.Context, world *ccl.Comm, c *config) error {
	if err := c.Place(world.Size()); err != nil {
		return err
	}
	rows, err := newSource(c)
	if err != nil {
		world.Abort(err)
		return err
	}
	if c.export != "" {
		return export(c, rows)
	}
	out := r.out
	if world.Rank() > 0 {
		out = io.Discard
	}
	r.loop.O.Batches = func(step int) ([]fit.Batch, error) { return rows.batches(step, world.Rank()) }
	if c.hf != "" {
		r.loop.O.Begin = func(ctx context.Context, t *fit.Trainer) error {
			err := t.LoadModel(ctx, c.hf)
			if err == nil {
				fmt.Fprintf(out, "beginning with the weights in %s\n", c.hf)
			}
			return err
		}
	}
	o := c.Machine
	o.Alone, o.Out = c.alone(), out
	return r.loop.On(ctx, world, &o, func(m *machine.Machine) (*fit.Trainer, error) {
		cuda, attention := m.Client().Platform() == "cuda", "softmax"
		if c.attn == "cudnn" && !cuda {
			return nil, fmt.Errorf("-attn cudnn: this is %s", m.Client().Platform())
		}
		if cuda && c.attn != "softmax" && c.fits() {
			attention = "cuDNN's"
		}
		fmt.Fprintf(out, "%d rank(s) of %v; engine %s\n", world.Size(), m.Client(), world.Backend())
		fmt.Fprintf(out, "%.2f M parameters; %d rows of %d tokens a step; products in %s, residual stream in %s, %s attention; ZeRO stage %d\n",
			float64(c.count())/1e6, c.Rows, c.model.Positions, c.network().Act, c.residual, attention, c.Fit.Stage)
		return fit.New(ctx, m, c.network(), c.training())
	})
}
