package main

import (
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/optim"
	tensors "github.com/goccl/goccl/train/optim/whole" // whole is a function here
)

// charSteps is set to compare optimizers on all of char:
//
//	go test ./examples/gpt -run TestOptimizers/adamw -v -args -char 200
var charSteps = flag.Int("char", 0, "TestOptimizers: train all of char, for this many `steps`")

// optimizer makes step number step on a parameter: w with the gradients g. at is the same for the same parameter.
type optimizer func(step int, at [2]int, t tensors.Tensor, lr, decay float64, w, g []float32) error

// memory is state by parameter.
type memory map[[2]int][]float32

func (m memory) of(at [2]int, n int) []float32 {
	if m[at] == nil {
		m[at] = make([]float32, n)
	}
	return m[at]
}

// adamw is what the others are compared with.
func adamw() optimizer {
	m, v := memory{}, memory{}
	return func(step int, at [2]int, _ tensors.Tensor, lr, decay float64, w, g []float32) error {
		return optim.Apply(optim.AdamW{LR: lr, Beta2: .95, Decay: decay}, step, w, g, m.of(at, len(w)), v.of(at, len(w)))
	}
}

// optimizers are those of train/optim, with rates that fit beside one of AdamW. Muon is for the matrices
// of the blocks, and AdamW for the rest.
func optimizers() map[string]optimizer {
	eight := map[[2]int]*optim.Moments8{}
	lion, row, col, mom, m, v := memory{}, memory{}, memory{}, memory{}, memory{}, memory{}
	work, rest := &tensors.Workspace[float32]{Mul: mat.Mul}, adamw()
	return map[string]optimizer{
		"adamw": adamw(),
		"adamw of 8 bits": func(step int, at [2]int, _ tensors.Tensor, lr, decay float64, w, g []float32) error {
			if eight[at] == nil {
				eight[at] = optim.NewMoments8(len(w))
			}
			return optim.Apply8(optim.AdamW{LR: lr, Beta2: .95, Decay: decay}, step, w, g, eight[at])
		},
		"lion": func(_ int, at [2]int, _ tensors.Tensor, lr, decay float64, w, g []float32) error {
			return optim.ApplyLion(optim.Lion{LR: lr / 2, Decay: 2 * decay}, w, g, lion.of(at, len(w)))
		},
		"lamb": func(step int, at [2]int, t tensors.Tensor, lr, decay float64, w, g []float32) error {
			return tensors.ApplyLAMB(tensors.LAMB{LR: 10 * lr, Beta2: .95, Decay: decay}, step, t, w, g, m.of(at, len(w)), v.of(at, len(w)))
		},
		"adafactor": func(step int, at [2]int, t tensors.Tensor, lr, _ float64, w, g []float32) error {
			rows, cols := t.State()
			return tensors.ApplyAdafactor(tensors.Adafactor{LR: 30 * lr}, step, t, w, g, row.of(at, rows), col.of(at, cols))
		},
		"muon": func(step int, at [2]int, t tensors.Tensor, lr, decay float64, w, g []float32) error {
			if decay == 0 || t.Name == "lm_head" {
				return rest(step, at, t, lr, decay, w, g)
			}
			return tensors.ApplyMuon(tensors.Muon{LR: lr, Decay: decay, MatchAdamW: true}, t, w, g, mom.of(at, len(w)), work)
		},
	}
}

// course trains c by an optimizer, alone, and returns the mean loss of the last tenth of the steps.
func course(ctx context.Context, t *testing.T, c gpt.Config, rows, steps int, apply optimizer) (loss float64) {
	raw, err := read(source(""))
	require.NoError(t, err)
	text, err := newText(source(""), raw, c.Context, 0)
	require.NoError(t, err)
	c.Vocab = text.vocab
	n := gpt.NewNet[float32](c, rows, nil)
	n.K = kernels()
	x := make([]float32, n.Len())
	p, g := first(c, 1)
	for step := 1; step <= steps; step++ {
		require.NoError(t, ctx.Err())
		tokens, targets := text.batch(1, step, rows, 0, rows, c.Context)
		for u := range p {
			l, err := n.Forward(u, p[u], 0, x, tokens, targets)
			require.NoError(t, err)
			if loss += l; step <= steps-steps/10 {
				loss = 0
			}
		}
		for u := len(p) - 1; u >= 0; u-- {
			require.NoError(t, n.Backward(u, p[u], g[u], 0, x, tokens, targets))
		}
		lr := optim.Cosine(step, steps/20, steps, 1e-3, 1e-4)
		for u := range p {
			for j, w := range p[u] {
				cols := c.Width // of a matrix; a norm has one row
				if c.Decays(u, j) && u <= c.Layers {
					cols = map[int]int{1: 3 * c.Width, 2: c.Width, 4: 4 * c.Width, 5: c.Width}[j]
				} else if c.Decays(u, j) {
					cols = c.Vocab
				}
				decay := 0.
				if c.Decays(u, j) {
					decay = .1
				}
				require.NoError(t, apply(step, [2]int{u, j}, tensors.Tensor{Name: c.Names(u)[j], Rows: len(w) / cols, Cols: cols}, lr, decay, w, g[u][j]))
				clear(g[u][j])
			}
		}
	}
	return loss / float64(steps/10)
}

// Each optimizer learns, and AdamW's loss with moments of 8 bits is AdamW's within 1 %.
func TestOptimizers(t *testing.T) {
	if _, err := os.Stat(filepath.Clean(source(""))); err != nil {
		t.Skip("NOT RUN: no book of the Go distribution here")
	}
	c, rows, steps := gpt.Config{Context: 32, Width: 64, Heads: 4, Layers: 2}, 8, 100
	if *charSteps > 0 {
		c, rows, steps = presets["char"], 16, *charSteps
	}
	loss := map[string]float64{}
	all := optimizers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !strings.HasPrefix(name, "adamw") {
				t.Skip("-short: its arithmetic has tests of its own")
			}
			loss[name] = course(t.Context(), t, c, rows, steps, all[name])
			t.Logf("loss %.4f", loss[name])
			require.Less(t, loss[name], 3.3) // from 4.5
		})
	}
	if wide, narrow := loss["adamw"], loss["adamw of 8 bits"]; wide > 0 && narrow > 0 { // both were asked for
		require.InEpsilon(t, wide, narrow, .01)
	}
}
