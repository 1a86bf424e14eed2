package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/history"
)

// validation is the metric of the loss on data that are not trained on.
const validation = "validation"

// picture writes the curve of the loss, and below it that of the validation if there is one.
func picture(h *history.History, name string) error {
	if len(h.Names()) == 0 { // the run had come to its end before
		return nil
	}
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	curves := []string{"loss"}
	if slices.Contains(h.Names(), validation) {
		curves = append(curves, validation)
	}
	return errors.Join(h.SVG(f, curves...), f.Close())
}

// formats are those of metrics that have not three decimals.
var formats = map[string]string{"loss": "%.5f", "tps": "%.0f", "mfu": "%.1f"}

// line prints the means of a step.
func line(out io.Writer, h *history.History, step int) {
	fmt.Fprintf(out, "step=%d", step)
	for _, name := range h.Names() {
		if name == validation { // it has a line of its own
			continue
		}
		for at, s := range h.Series(name) {
			if at == step {
				fmt.Fprintf(out, " %s="+cmp.Or(formats[name], "%.3f"), name, s.Mean)
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
	own += (len(tr.all) - len(tr.units)) * c.Sparse.Experts / c.experts.ranks * 8 * c.Width * c.Width / c.tp
	b := tr.model.Bytes()
	state := int64(0)
	for _, m := range tr.adam.m {
		state += int64(8 * len(m))
	}
	onOne := ""
	if own < c.Params() {
		onOne = fmt.Sprintf(", %d on rank 0", own)
	}
	fmt.Fprintf(out, "training a GPT-2 with %s (%s, %s, width %d%s) on %s, %d of them different\n",
		count(c.Params(), "parameter", "s"),
		count(c.Layers, "layer", "s"), count(c.Heads, "head", "s"), c.Width, onOne, count(tr.text.n, "token", "s"),
		tr.text.different)
	fmt.Fprintf(out, "%s; a step is %s of %s%s\n", c.layout(), count(c.rows, "row", "s"), count(c.Context, "token", "s"),
		c.micros())
	if slices.ContainsFunc([]string{"site", "dp", "ep", "pp", "sp", "tp"}, tr.mesh.Crosses) {
		fmt.Fprintln(out, tr.world) // which says on how many hosts
	}
	fmt.Fprintf(out, "memory of rank 0: parameters %.1f MB, gradients %.1f, AdamW's state %.1f, buffers %.1f\n",
		float64(b.Params)/1e6, float64(b.Grads)/1e6, float64(state)/1e6, float64(b.Buffers)/1e6)
	tr.adam.greet(out, c.held.dir)
	if c.dp*c.across > 1 {
		fmt.Fprintf(out, "communication: %s of parameters, each reduced as one\n", count(len(tr.units), "unit", "s"))
	}
	fmt.Fprintf(out, "%.2f MFLOP a token; these cores can do %.0f GFLOP/s\n", flops/1e6, peak/1e9)
	if c.tp > 1 && tr.mesh.Crosses("tp") {
		fmt.Fprintln(out, "warning: tp crosses hosts: each layer waits for the network four times; give each host whole tp groups")
	}
	fmt.Fprint(out, legend)
}

// layout says how the ranks share the work.
func (c *config) layout() string {
	text := count(c.dp*c.pp*c.across*c.tp, "rank", "s")
	var parts []string
	for _, p := range []struct {
		n    int
		name string
		what string
	}{{c.dp, "dp", "replicas"}, {c.pp, "pp", "stages of a pipeline"},
		{c.across, "sp", "ranks for each sequence, " + c.sp}, {c.tp, "tp", "ranks for each layer"}} {
		if p.n > 1 {
			parts = append(parts, fmt.Sprintf("%s=%d (%s)", p.name, p.n, p.what))
		}
	}
	if s := c.Sparse; s.Experts > 0 {
		parts = append(parts, fmt.Sprintf("ep=%d (of the replicas, share %s a layer, of which a token takes %d)",
			c.experts.ranks, count(s.Experts, "expert", "s"), s.Top))
	}
	if c.stage > 0 {
		parts = append(parts, fmt.Sprintf("ZeRO stage %d (%s sharded)", c.stage,
			[]string{"optimizer state", "gradients, too,", "parameters, too,"}[c.stage-1]))
	}
	if c.apart.on() {
		parts = append(parts, fmt.Sprintf("%s that train apart for %s", count(c.apart.sites, "site", "s"),
			count(c.apart.o.Every, "step", "s")))
	}
	if parts == nil {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// micros says how a step is divided, "" if it is not.
func (c *config) micros() string {
	if c.micro == 1 && c.pp == 1 {
		return ""
	}
	text := ", in " + count(c.micro, "micro batch", "es") + " a rank"
	if c.pp > 1 {
		text += " by " + c.schedule
	}
	return text
}

// count is a number of things, of which several end in s.
func count(n int, thing, s string) string {
	if n == 1 {
		s = ""
	}
	return fmt.Sprintf("%d %s%s", n, thing, s)
}
