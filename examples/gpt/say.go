package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/zero"
)

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
	if slices.ContainsFunc([]string{"dp", "pp", "sp", "tp"}, tr.mesh.Crosses) {
		fmt.Fprintln(out, tr.world) // which says on how many hosts
	}
	fmt.Fprintf(out, "%v; %s of %s in %s a rank, %s\n", tr.mesh, count(c.rows, "row", "s"), count(c.Context, "token", "s"), count(c.micro, "micro batch", "es"), c.schedule)
	fmt.Fprintf(out, "%d parameters, %d of them on rank 0, before ZeRO stage %d; %d tokens of data, %d different\n", c.Params(), own,
		c.stage, tr.text.n, tr.text.different)
	fmt.Fprintf(out, "memory of rank 0: %.1f MB by the formula; has %.1f of parameters, %.1f of gradients, %.1f of state, %.1f of buffers\n",
		float64(need(c, own))/1e6, float64(b.Params)/1e6, float64(b.Grads)/1e6, float64(state)/1e6, float64(b.Buffers)/1e6)
	if r, ok := tr.model.(*replicas); ok {
		fmt.Fprintf(out, "%s in %s\n", count(r.tensors(), "gradient", "s"), count(len(r.red.Buckets()), "bucket", "s"))
	} else {
		fmt.Fprintf(out, "%s, each reduced as one\n", count(len(tr.units), "unit", "s"))
	}
	fmt.Fprintf(out, "%.2f MFLOP a token; %.0f GFLOP/s in registers on all ranks\n", flops/1e6, peak/1e9)
	if c.tp > 1 && tr.mesh.Crosses("tp") {
		fmt.Fprintln(out, "warning: tp crosses hosts: each layer waits for the network four times; give each host whole tp groups")
	}
}

// need is zero.Need for this run's AdamW.
func need(c *config, own int) int64 {
	n := c.dp * c.across
	if c.bf16 {
		return zero.Need(int64(own), c.stage, n, 2, 2, 12)
	}
	return zero.Need(int64(own), c.stage, n, 4, 4, 8)
}

// count is a number of things, of which several end in s.
func count(n int, thing, s string) string {
	if n == 1 {
		s = ""
	}
	return fmt.Sprintf("%d %s%s", n, thing, s)
}
