// Command gpt2 trains nanoGPT's GPT-2 with XLA, on NVIDIA's GPUs or on a CPU, in one Go binary:
//
//	go build -tags xla,nccl ./examples/gpt2
//	GOCCL_XLA_PLUGIN=.../jax_plugins/xla_cuda13/xla_cuda_plugin.so ./gpt2 -preset gpt2 -bf16
//	./gpt2 -np 2 -zero 1 -plugin .../pjrt_c_api_cpu_plugin.so
//
// Gradients are averaged in XLA's own buffers; with -zero package train/zero shards what a rank holds. A rank has one device,
// which its Comm has chosen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
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
		os.Exit(spawn(c))
	}
	// The first interrupt ends the run after the step under way, a second one at once.
	signals, stop := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		stop <- <-signals
		<-signals
		os.Exit(130)
	}()
	if err := job(context.Background(), c, &run{stop: stop, in: os.Stdin, out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "gpt2:", err)
		os.Exit(1)
	}
}

// doneEnv names a file that rank 0 makes when the training is over: with -recover ranks may have failed before.
const doneEnv = "GPT2_DONE"

// spawn runs this program as the ranks of -np, and returns its exit code.
func spawn(c *config) int {
	command := boot.Command{N: c.np, Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Grace: time.Minute}
	var err error
	done := ""
	if command.Path, err = os.Executable(); err == nil && c.recover {
		var dir string
		if dir, err = os.MkdirTemp("", "gpt2"); err == nil {
			defer os.RemoveAll(dir)
			done = filepath.Join(dir, "done")
			command.KeepGoing, command.Env = true, append(os.Environ(), doneEnv+"="+done)
		}
	}
	if err == nil {
		err = boot.Spawn(context.Background(), command)
	}
	_, missing := os.Stat(done)
	var exit *boot.ExitError
	switch {
	case done != "" && missing == nil: // the others went on without the ranks that failed
		return 0
	case errors.As(err, &exit) && exit.Code > 0:
		return exit.Code
	case err != nil:
		fmt.Fprintln(os.Stderr, "gpt2:", err)
		return 1
	}
	return 0
}

// job is one rank from Join to Close.
func job(ctx context.Context, c *config, r *run) error {
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
	if file := os.Getenv(doneEnv); err == nil && world.Rank() == 0 && file != "" {
		err = os.WriteFile(file, nil, 0o600)
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
