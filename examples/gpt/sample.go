package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/tp"
)

// sample goes on from a text, n tokens, with the same result on all ranks. A rank computes whole sequences; the
// stages of a pipeline take turns.
func (tr *trainer) sample(ctx context.Context, from string, n int) (string, error) {
	tokens, err := tr.text.encode(from)
	if err != nil {
		return "", err
	}
	c := tr.cfg
	net := gpt.NewNet[float32](c.Config, 1, &split{ctx, &tp.Group{Comm: tr.split.g.Comm}})
	net.K, net.Experts = kernels(), tr.net.Experts
	tr.split.ctx = ctx // whose exchanges experts have
	line := tr.mesh.Comm("pp")
	last := line.Size() - 1
	x := make([]float32, net.Len())
	r := rand.New(rand.NewPCG(c.seed, 3))
	in := make([]int32, c.Context)
	for range n {
		seen := tokens[max(0, len(tokens)-c.Context):]
		clear(in)
		copy(in, seen)
		next := []int32{0}
		for stage := range line.Size() {
			if stage == line.Rank() {
				logits, err := tr.forward(ctx, net, x, in)
				if err != nil {
					return "", err
				}
				if stage == last {
					at := max(len(seen)-1, 0)
					next[0] = c.draw(logits[at*c.Vocab : (at+1)*c.Vocab][:len(tr.text.chars)], r.Float32())
				}
			}
			if stage < last {
				err = ccl.Broadcast(ctx, line, x, stage)
			} else {
				err = ccl.Broadcast(ctx, line, next, stage)
			}
			if err != nil {
				return "", err
			}
		}
		tokens = append(tokens, next[0])
	}
	var b []byte
	for _, k := range tokens {
		b = append(b, tr.text.chars[k])
	}
	return readable(string(b)), nil
}

// readable is a text as a terminal may show it: whole characters, and of those that control it only newlines and tabs.
// Tokens are bytes, so a text may be no UTF-8, and end within a character.
func readable(s string) string {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// say prints a sample.
func (c *config) say(out io.Writer, sample string) {
	fmt.Fprintf(out, "\n%s by the model:\n%s\n", count(c.draws.tokens, "token", "s"), sample)
}

// generate continues -sample's text by a checkpoint. The model is the checkpoint's.
func (r *run) generate(ctx context.Context, world *ccl.Comm, c *config) (err error) {
	out := r.out
	if world.Rank() != 0 {
		out = io.Discard
	}
	dir := ckpt.Step(c.save, c.from)
	if c.from < 0 {
		if dir, _, err = ckpt.Latest(ctx, world, c.save); err != nil {
			return err
		}
	}
	var p progress
	if err := ckpt.Load(ctx, world, dir, &p, nil); err != nil {
		return err
	}
	if p.Layers < 1 || p.Heads < 1 || p.Width < 1 || p.Context < 1 || p.Vocab < len(p.Chars) {
		return fmt.Errorf("%s does not say what model it has: an older gpt has saved it; go on from it with -resume once",
			dir)
	}
	c.Config = p.Config
	if err := errors.Join(c.divides(), c.experts.divides(c), c.place(world.Size())); err != nil {
		return err
	}
	text := known(p.Chars, p.Vocab)
	if _, err := text.encode(c.draws.sample); err != nil {
		return err
	}
	tr, err := newTrainer(ctx, world, c, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.close()) }()
	if err := tr.fill(ctx, dir, p.Step); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s of %d parameters, after %s\n", dir, c.Params(), count(p.Step, "step", "s"))
	s, err := tr.sample(ctx, c.draws.sample, c.draws.tokens)
	if err != nil {
		return err
	}
	c.say(out, s)
	r.over = true
	return nil
}

// forward runs one row through the units of this stage, and returns its logits if the head is one of them.
func (tr *trainer) forward(ctx context.Context, net *gpt.Net[float32], x []float32,
	in []int32) (logits []float32, err error) {
	defer net.Forget(0)
	for i, u := range tr.units {
		p, done, err := tr.params(ctx, i)
		if err != nil {
			return nil, err
		}
		if u == tr.cfg.Layers+1 {
			logits = net.Logits(p, 0, x)
		} else if _, err := net.Forward(u, p, 0, x, in, nil); err != nil {
			return nil, err
		}
		done()
	}
	return logits, nil
}

// draw chooses a token by its logits, which it changes, given a random number below 1.
func (c *config) draw(logits []float32, left float32) (next int32) {
	k := c.draws.topk
	if c.draws.temperature == 0 {
		k = 1
	}
	if k > 0 && k < len(logits) {
		order := make([]int32, len(logits))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
		for _, i := range order[k:] {
			logits[i] = float32(math.Inf(-1))
		}
	}
	if c.draws.temperature > 0 {
		mat.Softmax(logits, float32(1/c.draws.temperature))
	} else {
		mat.Softmax(logits, 1)
	}
	last := int32(0) // that may be drawn: what is left after it is what rounding has left
	for i, weight := range logits {
		if weight == 0 {
			continue
		}
		if last = int32(i); left <= weight {
			break
		}
		left -= weight
	}
	return last
}

// finite says that a loss is a number.
func finite(loss float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %v: a smaller -lr, a -clip or a longer -warmup keeps it finite", loss)
	}
	return nil
}
