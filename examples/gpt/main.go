// Command gpt trains nanoGPT's GPT-2, in Go alone, on any number of ranks and in any layout that package train has:
//
//	go run ./examples/gpt -np 2 -steps 50
//	go run ./examples/gpt -np 4 -tp 2 -zero 1 -sample "The "
//	go run ./bench launch -np 4 -- gpt -preset babygpt
//
// A rank computes on one core. The losses of all layouts agree to 1e-5 for the first 50 steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/zero"
)

func main() {
	c, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	launch, bad := boot.Detect(os.Getenv)
	started := bad == nil && launch.Launcher != "none"
	if err == nil && !started {
		err = c.place(max(c.np, 1))
	}
	var raw []byte
	if err == nil && !started { // so that a wrong file starts nothing
		if raw, err = read(source(c.data)); err == nil {
			_, err = newText(source(c.data), raw, c.Context, c.Vocab)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(2)
	}
	if c.np > 1 && !started {
		os.Exit(spawn(c.np))
	}
	// The first interrupt ends the run after the step under way, a second one at once.
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	runtime.GOMAXPROCS(1)
	if err := run(context.Background(), c, stop, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(1)
	}
}

// spawn runs this program as n ranks, and returns its exit code.
func spawn(n int) int {
	self, err := os.Executable()
	if err == nil {
		err = boot.Spawn(context.Background(), boot.Command{N: n, Path: self, Args: os.Args[1:], Stdout: os.Stdout,
			Stderr: os.Stderr, Grace: time.Minute})
	}
	var exit *boot.ExitError
	switch {
	case errors.As(err, &exit) && exit.Code > 0:
		return exit.Code
	case err != nil:
		fmt.Fprintln(os.Stderr, "gpt:", err)
		return 1
	}
	return 0
}

// run is one rank.
func run(ctx context.Context, c *config, stop <-chan os.Signal, out io.Writer) error {
	world, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer world.Close()
	if err := c.place(world.Size()); err != nil {
		return err
	}
	return train(ctx, world, c, stop, out)
}

// train trains on the ranks of world.
func train(ctx context.Context, world *ccl.Comm, c *config, stop <-chan os.Signal, out io.Writer) (err error) {
	raw, err := data.OnRoot(ctx, world, 0, func() ([]byte, error) { return read(source(c.data)) })
	if err != nil {
		return err
	}
	text, err := newText(source(c.data), raw, c.Context, c.Vocab)
	if err != nil {
		return err
	}
	c.Vocab = text.vocab
	if c.sample != "" {
		if _, err := text.encode(c.sample); err != nil {
			return err
		}
	}
	tr, err := newTrainer(ctx, world, c, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.close()) }()
	o := &history.Options{}
	first := world.Rank() == 0
	if !first {
		out = io.Discard
	}
	if c.json != "" && first {
		f, err := os.Create(c.json)
		if err != nil {
			world.Abort(err)
			return err
		}
		defer f.Close()
		o.JSON = f
	}
	h, err := history.New(ctx, world, o)
	if err != nil {
		return err
	}
	flops := history.FlopsPerToken(c.Params()-c.Vocab*c.Width-c.Context*c.Width, c.Layers, c.Width, c.Context)
	peak := mat.Peak() * float64(world.Size())
	tr.greet(out, flops, peak)
	begin, exposed, done := time.Now(), time.Duration(0), 0
	stopped := make([]uint8, 1)
	for step := 1; step <= c.steps; step++ {
		loss, t, err := tr.step(ctx, step)
		if err != nil {
			return err
		}
		if err := finite(loss); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		done, exposed = step, exposed+t.dtx
		tps := float64(c.rows*c.Context) / t.dt.Seconds()
		m := []history.Metric{{Name: "loss", Value: loss}, {Name: "dt", Value: t.dt.Seconds()}, {Name: "dtf", Value: t.dtf.Seconds()},
			{Name: "dtb", Value: t.dtb.Seconds()}, {Name: "dto", Value: t.dto.Seconds()}, {Name: "dtc", Value: t.dtc.Seconds()},
			{Name: "dtx", Value: t.dtx.Seconds()}, {Name: "tps", Value: tps}, {Name: "mfu", Value: history.MFU(tps, flops, peak)}}
		if err := h.Log(ctx, step, m...); err != nil {
			return err
		}
		if step <= 3 || step%c.log == 0 || step == c.steps {
			line(out, h, step)
		}
		if c.eval > 0 && step%c.eval == 0 {
			l, err := tr.eval(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "step=%d validation=%.4f\n", step, l)
		}
		select {
		case <-stop:
			stopped[0] = 1
			go func() { <-stop; os.Exit(130) }()
		default:
		}
		if err := ccl.AllReduce(ctx, world, stopped, stopped, ccl.Max); err != nil {
			return err
		}
		if stopped[0] == 1 {
			fmt.Fprintf(out, "interrupted after step %d\n", step)
			break
		}
	}
	wall := time.Since(begin)
	fmt.Fprintf(out, "%d steps, %d tokens in %.1f s: %.0f tokens/s; exposed communication %.1f %%\n", done, done*c.rows*c.Context,
		wall.Seconds(), float64(done*c.rows*c.Context)/wall.Seconds(), 100*exposed.Seconds()/wall.Seconds())
	if c.sample != "" && stopped[0] == 0 {
		s, err := tr.sample(ctx, c.sample, 200)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s)
	}
	if c.svg != "" && first {
		return picture(h, c.svg)
	}
	return nil
}

// picture writes the curve of the loss.
func picture(h *history.History, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(h.SVG(f, "loss"), f.Close())
}

// line prints the means of a step.
func line(out io.Writer, h *history.History, step int) {
	fmt.Fprintf(out, "step=%d", step)
	for _, name := range h.Names() {
		format := " %s=%.3f"
		switch name {
		case "loss":
			format = " %s=%.5f"
		case "tps":
			format = " %s=%.0f"
		case "mfu":
			format = " %s=%.1f"
		}
		for at, s := range h.Series(name) {
			if at == step {
				fmt.Fprintf(out, format, name, s.Mean)
			}
		}
	}
	fmt.Fprintln(out)
}

// greet says what is trained, and where.
func (tr *trainer) greet(out io.Writer, flops, peak float64) {
	c := tr.cfg
	own := 0
	for _, u := range tr.units {
		for _, n := range c.Units(c.tp)[u] {
			own += n
		}
	}
	b := tr.model.Bytes()
	state := int64(0)
	for _, m := range tr.m {
		state += int64(8 * len(m))
	}
	fmt.Fprintf(out, "%v; %d rows of %d tokens in %d micro batches a rank, %s\n", tr.mesh, c.rows, c.Context, c.micro, c.schedule)
	fmt.Fprintf(out, "%d parameters, %d of them on rank 0, before ZeRO stage %d; %d tokens of data, %d different\n", c.Params(), own,
		c.stage, len(tr.text.tokens), c.Vocab)
	fmt.Fprintf(out, "memory of rank 0: %.1f MB by the formula; has %.1f of parameters, %.1f of gradients, %.1f of state, %.1f of buffers\n",
		float64(zero.Need(int64(own), c.stage, c.dp, 4, 4, 8))/1e6, float64(b.Params)/1e6, float64(b.Grads)/1e6, float64(state)/1e6, float64(b.Buffers)/1e6)
	fmt.Fprintf(out, "%.2f MFLOP a token; %.0f GFLOP/s in registers on all ranks\n", flops/1e6, peak/1e9)
	if c.tp > 1 && tr.mesh.Crosses("tp") {
		fmt.Fprintln(out, "warning: tp crosses hosts: each layer waits for the network four times; give each host whole tp groups")
	}
}
