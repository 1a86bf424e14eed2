package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/ckpt"
)

// ready says what of the flags cannot work on this host, before a rank is started.
func (c *config) ready(ctx context.Context) error {
	if c.draws.generate { // the checkpoint has all that it needs
		return lookup(ctx, c)
	}
	name := source(c.data)
	raw, err := read(name)
	if err != nil {
		return err
	}
	text, err := newText(name, raw, c.Context, c.Vocab)
	if err != nil {
		return err
	}
	if c.draws.sample != "" {
		if _, err := text.encode(c.draws.sample); err != nil {
			return err
		}
	}
	if err := c.room(max(c.np, 1), text.vocab, len(raw), installed()); err != nil {
		return err
	}
	raw, text = nil, nil
	debug.FreeOSMemory() // the data are read again by the job, which may be this process
	for _, name := range []string{c.json, c.svg, c.files.csv, c.files.timeline} {
		if name == "" {
			continue
		}
		if err := files.Writable(name); err != nil {
			return err
		}
	}
	if c.events != "" {
		if err := os.MkdirAll(c.events, 0o777); err != nil {
			return fmt.Errorf("-events: %w", err)
		}
		if err := files.Writable(filepath.Join(c.events, "writable")); err != nil {
			return fmt.Errorf("-events: %w", err)
		}
	}
	return lookup(ctx, c)
}

// lookup says whether the directory of checkpoints is as the flags expect it, and makes it.
func lookup(ctx context.Context, c *config) error {
	if c.save == "" {
		return nil
	}
	alone, err := ccl.NewComm(ctx, boot.Local(1)[0], nil)
	if err != nil {
		return err
	}
	defer alone.Close()
	dir, _, err := ckpt.Latest(ctx, alone, c.save)
	switch {
	case c.from >= 0:
		if _, err := ckpt.Inspect(ckpt.Step(c.save, c.from)); err != nil {
			return fmt.Errorf("-from %d: %w", c.from, err)
		}
		if c.draws.generate {
			return nil
		}
	case c.draws.generate:
		return err
	case !c.resume && err == nil:
		return fmt.Errorf("-save %s has %s: resume from it with -resume, or name another directory", c.save, dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(c.save, 0o777); err != nil {
		return fmt.Errorf("-save: %w", err)
	}
	return files.Writable(filepath.Join(c.save, "writable"))
}

// memory is how many bytes a rank holds at least: parameters, gradients and the state of AdamW, and activations.
func (c *config) memory(vocab int) float64 {
	f := func(n int) float64 { return float64(n) }
	w, context, tp := f(c.Width), f(c.Context), f(c.tp)
	wide := 12. // matrices of a block, of w*w
	if c.Sparse.Experts > 0 && !c.Sparse.Shared {
		wide = 4
	}
	own := f(c.Layers/c.pp)*wide*w*w/tp + (f(vocab)+context)*w
	if !c.Tied && c.pp == 1 {
		own += f(vocab) * w
	}
	p, g, s, n := 4., 4., 8., f(c.dp*c.across)
	if c.held.bf16 {
		p, g, s = 2, 2, 12
	}
	if c.held.dir != "" { // the masters are part of s; at stage 3 a unit of parameters and of gradients stays, twice
		if s = 0; c.stage == 3 {
			p, g = 2*p/f(c.Layers+2), 2*g/f(c.Layers+2)
			n = 1
		}
	}
	of := p + g + s // of an expert's parameter, which fewer ranks share
	for stage, bytes := range []*float64{&s, &g, &p} {
		if c.stage > stage {
			of -= *bytes * (1 - f(c.experts.ranks)/n)
			*bytes /= n
		}
	}
	tokens := f(c.rows/c.dp/c.micro) * context / f(c.across)
	block := 4*w + 16*w/tp
	if c.sp != "ring" {
		block += f(c.Heads) / tp * context
	}
	experts := f(c.Layers/c.pp) * 8 * w * w * f(c.Sparse.Experts) / f(c.experts.ranks) / tp
	if c.Sparse.Experts > 0 {
		block += (2*w + 12*w/tp) * f(c.Sparse.Top) // what comes to them, if each rank gets as much, and what went away
		if !c.Sparse.Shared {
			block -= 12 * w / tp
		}
		own += f(c.Layers/c.pp) * w * f(c.Sparse.Experts) // the router
	}
	layers := f(c.Layers/c.pp) * block
	if c.recompute { // one, and the inputs of all
		layers = block + f(c.Layers/c.pp)*w
	}
	return own*(p+g+s) + experts*of + 4*tokens*(layers+w)
}

// room says whether so many ranks, each with data of so many bytes, fit into memory of so many bytes; 0 is not known.
func (c *config) room(ranks, vocab, data int, bytes float64) error {
	if need := float64(ranks) * (c.memory(vocab) + float64(data)); bytes > 0 && need > bytes {
		return fmt.Errorf("%s would hold %.4g GB, and this host has %.4g: a smaller model, fewer -rows, -recompute, or -zero 3 on ranks of more hosts",
			count(ranks, "rank", "s"), need/1e9, bytes/1e9)
	}
	return nil
}

// installed is the memory of this host, where the system says it in /proc.
func installed() float64 { return proc("/proc/meminfo", "MemTotal:") }

// resident is the memory that this process has, where the system says it in /proc: pages that n processes share count
// 1/n.
func resident() float64 {
	debug.FreeOSMemory()
	return proc("/proc/self/smaps_rollup", "\nPss:")
}

// proc reads a number of kB after a word, and returns bytes; 0 if there is none.
func proc(file, word string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), word)
	var kB float64
	if _, err := fmt.Sscan(after, &kB); err != nil {
		return 0
	}
	return 1024 * kB
}
