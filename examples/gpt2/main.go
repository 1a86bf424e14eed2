// Command gpt2 trains nanoGPT's GPT-2 with XLA, on NVIDIA's GPUs or on a CPU, in one Go binary:
//
//	go build -tags xla,nccl ./examples/gpt2
//	GOCCL_XLA_PLUGIN=.../jax_plugins/xla_cuda13/xla_cuda_plugin.so ./gpt2 -preset gpt2 -bf16
//	./gpt2 -np 2 -zero 1 -plugin .../pjrt_c_api_cpu_plugin.so
//
// Gradients are averaged in XLA's own buffers; with -zero package train/zero shards what a rank
// holds. A rank has one device, which its Comm has chosen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/examples/internal/job"
)

func main() {
	c, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	launch, bad := boot.Detect(os.Getenv)
	started := bad == nil && launch.Launcher != "none"
	switch {
	case err != nil:
	case started && c.np > 0 && launch.Size > 0 && c.np != launch.Size:
		err = fmt.Errorf("-np %d, and the launcher has started %d ranks: leave -np out", c.np, launch.Size)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpt2:", err)
		os.Exit(2)
	}
	if c.np > 1 && !started {
		code, err := job.Spawn(c.np, c.recover)
		if err != nil {
			fmt.Fprintln(os.Stderr, "gpt2:", err)
		}
		os.Exit(code)
	}
	stop := job.Signals() // the first ends the run after the step under way
	if err := join(context.Background(), c, &run{stop: stop, in: os.Stdin, out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "gpt2:", err)
		os.Exit(1)
	}
}

// join is one rank from Join to Close.
func join(ctx context.Context, c *config, r *run) error {
	o := &ccl.Options{Backend: c.backend}
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
	world, err = keepOn(ctx, world, c, r)
	if err == nil && world.Rank() == 0 {
		err = job.Done()
	}
	return errors.Join(err, world.Close())
}

// run is one rank's run.
type run struct {
	stop   <-chan os.Signal
	in     io.Reader // -pace's
	out    io.Writer // what rank 0 says
	said   int       // the step of the last line
	again  bool      // a rank was lost
	losses []float64 // of all steps, for tests
}
