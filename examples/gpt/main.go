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
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/train/history/timeline"
)

func main() {
	m := newMeter(os.Stdout)
	c, err := parse(os.Args[1:], m)
	if errors.Is(err, flag.ErrHelp) {
		end(m.failed)
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
		code, err := job.Spawn(max(c.np, 1)+c.spares, c.recover || c.spares > 0, screenEnv+"="+watched())
		if err != nil {
			fmt.Fprintln(os.Stderr, "gpt:", err)
		}
		os.Exit(code)
	}
	stop := job.Signals() // the first ends the run after the step under way and saves it
	runtime.GOMAXPROCS(1)
	err = join(context.Background(), c, &run{stop: stop, out: m, meter: m}, launch.Size)
	end(cmp.Or(err, m.failed))
}

// end says what is wrong, if anything is, and ends the program then.
func end(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "gpt:", err)
	var misfit misfit
	if errors.As(err, &misfit) {
		os.Exit(2)
	}
	os.Exit(1)
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
	if err := cmp.Or(c.replaceable(), c.place(ranks)); err != nil {
		return misfit{err}
	}
	return nil
}

// join is one rank from Join to Close, in a job in which so many ranks were started.
func join(ctx context.Context, c *config, r *run, size int) error {
	o := &ccl.Options{Spares: c.spares}
	if c.files.timeline != "" {
		r.line = timeline.New(0)
		o.OnCall = r.line.Call
	}
	world, err := ccl.Join(ctx, o)
	if errors.Is(err, ccl.ErrUnused) { // this rank is a spare, and none was lost
		return nil
	}
	if err != nil {
		return err
	}
	err = c.adopt(world.Size(), size)
	switch {
	case err != nil:
	case c.draws.generate:
		err = r.generate(ctx, world, c)
	default:
		world, err = keepOn(ctx, world, c, r)
	}
	if err == nil && r.tells(world.Rank()) {
		err = job.Done()
	}
	return errors.Join(err, world.Close())
}

// tells reports whether this rank is to say that all work is done. With spares every rank knows it,
// and rank 0 may be lost before it has said so.
func (r *run) tells(rank int) bool { return r.over && (rank == 0 || r.kept.over) }
