//go:build xla && cgo && linux

package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/ckpt"
)

const tinyConfig = `{"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_layer":2,"n_head":2,"n_embd":32,"n_positions":16,"vocab_size":50,"layer_norm_epsilon":1e-05}`

var keepHF = flag.String("hf", "", "TestBeginsWith: leave the model in this `directory`, for testdata/hf.py")

// What transformers 4.57 and PyTorch 2.15 have for the first steps from the weights of numbers, with AdamW and the learning rate 1e-2:
//
//	go test -tags xla ./examples/gpt2 -run TestBeginsWith -args -hf DIR
//	gpt2 -layers 2 -heads 2 -width 32 -context 16 -vocab 50 -rows 4 -steps 6 -export DIR/same
//	python3 examples/gpt2/testdata/hf.py DIR 4 6 1e-2
var huggingFace = []float64{4.39102, 4.46197, 3.96678, 4.16485, 3.91805, 3.73694}

// numbers are small ones, which a script can make, too: the generator of Park and Miller.
func numbers(seed, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		seed = seed * 48271 % 2147483647
		x[i] = float32(scale * (float64(seed)/2147483647*2 - 1))
	}
	return x
}

// written makes a directory as Hugging Face saves one, with names behind prefix.
func written(t *testing.T, dir, prefix string) {
	t.Helper()
	described := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(described, "config.json"), []byte(tinyConfig), 0o600))
	c, err := parse([]string{"-hf", described, "-np", "1"}, io.Discard)
	require.NoError(t, err)
	var ts []ckpt.Tensor
	for i, p := range c.params() {
		x := numbers(i+1, p.Len(), .3)
		if p.Mean == 1 {
			for k := range x {
				x[k]++
			}
		}
		ts = append(ts, ckpt.Tensor{Name: prefix + strings.TrimPrefix(p.Name, "transformer."), Shape: p.Dims, Data: x})
	}
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		saved := filepath.Join(t.TempDir(), "saved")
		require.NoError(t, ckpt.Save(t.Context(), c, saved, nil, ts))
		require.NoError(t, ckpt.Export(saved, dir, 0, nil))
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(tinyConfig), 0o600))
}

// A GPT-2 that Hugging Face has saved, with biases and its own GELU, begins with its loss there and goes on as PyTorch does, whatever
// the layout is; what is saved goes on here.
func TestBeginsWith(t *testing.T) {
	dir := *keepHF
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "hf")
	}
	written(t, dir, "transformer.")
	plain := filepath.Join(t.TempDir(), "plain")
	written(t, plain, "")
	begun := func(n int, args ...string) (all []float64) {
		args = append([]string{"-lr", "1e-2", "-rows", "4", "-log", "2", "-plugin", xlatest.Path(t), "-options", "cpu_device_count=1", "-flags", quick}, args...)
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			r, said, err := trained(t, c, "", args...)
			require.NoError(t, err)
			if c.Rank() == 0 {
				all = r.loop.Losses
				require.Equal(t, !slices.Contains(args, "-resume"), strings.Contains(said, "beginning with the weights in "))
			}
		}, ccltest.Deadline(3*time.Minute))
		return all
	}
	require.InDeltaSlice(t, huggingFace, begun(1, "-hf", dir, "-steps", "6"), 1e-4)
	saved := filepath.Join(t.TempDir(), "saved")
	got := begun(2, "-hf", plain, "-steps", "4", "-zero", "3", "-share", "-save", saved)
	got = append(got, begun(1, "-hf", plain, "-steps", "6", "-resume", "-save", saved)...)
	require.InDeltaSlice(t, huggingFace, got, 1e-4)

	deeper := []byte(strings.Replace(tinyConfig, `"n_layer":2`, `"n_layer":3`, 1))
	for of, name := range map[string]string{dir: "transformer.h.2.attn.c_attn.bias", plain: "transformer.h.2.attn.c_attn.bias"} {
		require.NoError(t, os.WriteFile(filepath.Join(of, "config.json"), deeper, 0o600))
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			_, _, err := trained(t, c, "", "-hf", of, "-plugin", xlatest.Path(t), "-share")
			require.ErrorContains(t, err, of+" has no "+name)
		}, ccltest.Deadline(3*time.Minute))
	}
}
