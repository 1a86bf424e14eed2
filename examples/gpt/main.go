// Command gpt trains nanoGPT's GPT-2, in Go alone, on any number of ranks and in any layout that package train has:
//
//	go run ./examples/gpt -np 2 -steps 50
//	go run ./examples/gpt -np 4 -tp 2 -zero 1 -save run -sample "The "
//	go run ./examples/gpt -save run -generate -sample "The "
//	go run ./bench launch -np 4 -- gpt -preset babygpt
//
// A rank computes on one core. The losses of all layouts agree to 1e-5 for the first 50 steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
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
	if err == nil && !started {
		if err = c.place(max(c.np, 1)); err == nil {
			err = c.ready(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(2)
	}
	if max(c.np, 1)+c.spares > 1 && !started {
		os.Exit(spawn(c))
	}
	signals, stop := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		obey(signals, stop)
		os.Exit(130)
	}()
	runtime.GOMAXPROCS(1)
	m := newMeter(os.Stdout)
	if err := job(context.Background(), c, &run{stop: stop, out: m, meter: m}, launch.Size); err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		var misfit misfit
		if errors.As(err, &misfit) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// obey passes on the first signal, which ends the run after the step under way and saves it, and returns on a second interrupt,
// which ends it at once. What comes within a second of the first one is that one again: timeout signals a program and
// its group. A second SIGTERM is never more than the first: batch systems repeat it, and have SIGKILL.
func obey(signals <-chan os.Signal, stop chan<- os.Signal) {
	first := <-signals
	began := time.Now()
	stop <- first
	for s := range signals {
		if s == os.Interrupt && time.Since(began) > time.Second {
			return
		}
	}
}

// misfit is about flags that do not fit the ranks that a launcher has started.
type misfit struct{ error }

// adopt places the ranks of a job in which size were started, spares included.
func (c *config) adopt(ranks, size int) error {
	if c.spares == 0 { // so the launcher has said how many there are
		c.spares = max(size-ranks, 0)
	}
	if c.np > 0 && c.np != ranks {
		return misfit{fmt.Errorf("-np %d, and the launcher has started %s: leave -np out", c.np, count(ranks, "rank", "s"))}
	}
	if err := c.replaceable(); err != nil {
		return misfit{err}
	}
	if err := c.place(ranks); err != nil {
		return misfit{err}
	}
	return nil
}

// doneEnv names the file that the ranks of a job with -recover or -spares make when they have come to the end.
const doneEnv = "GPT_RECOVER_DONE"

// spawn runs this program as the ranks of -np, and returns its exit code.
func spawn(c *config) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	// Spawn passes on what comes while there are ranks. What comes when they have ended must not hide how they did.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	command := boot.Command{N: max(c.np, 1) + c.spares, Path: self, Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Grace: time.Minute,
		Env: append(os.Environ(), screenEnv+"="+screenName())}
	done := ""
	if c.recover || c.spares > 0 {
		dir, err := os.MkdirTemp("", "gpt")
		if err != nil {
			return fail(err)
		}
		defer os.RemoveAll(dir)
		done = filepath.Join(dir, "done")
		command.KeepGoing, command.Env = true, append(command.Env, doneEnv+"="+done)
	}
	err = boot.Spawn(context.Background(), command)
	if _, missing := os.Stat(done); done != "" && missing == nil { // the others went on without the ranks that failed
		return 0
	}
	var exit *boot.ExitError
	switch {
	case errors.As(err, &exit) && exit.Code > 0:
		return exit.Code
	case err != nil:
		return fail(err)
	}
	return 0
}

// job is one rank from Join to Close, in a job in which so many ranks were started.
func job(ctx context.Context, c *config, r *run, size int) error {
	world, err := ccl.Join(ctx, &ccl.Options{Spares: c.spares})
	if errors.Is(err, ccl.ErrUnused) { // this rank is a spare, and none was lost
		return nil
	}
	if err != nil {
		return err
	}
	err = c.adopt(world.Size(), size)
	switch {
	case err != nil:
	case c.generate:
		err = r.generate(ctx, world, c)
	default:
		world, err = keepOn(ctx, world, c, r)
	}
	if file := os.Getenv(doneEnv); err == nil && r.tells(world.Rank()) && file != "" {
		err = os.WriteFile(file, nil, 0o600)
	}
	return errors.Join(err, world.Close())
}

// tells reports whether this rank is to say that all work is done. With spares every rank knows it, and rank 0 may be lost before
// it has said so.
func (r *run) tells(rank int) bool { return r.over && (rank == 0 || r.kept.over) }
