//go:build xla && cgo && linux

package main

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
)

var held = regexp.MustCompile(`held-out loss=([0-9.]+)`)

// tuned runs the command as n ranks, and returns the scores and what it said.
func tuned(t *testing.T, n int, args ...string) (scores []float64, said string) {
	args = append([]string{"-data", "testdata/train.jsonl", "-context", "32", "-log", "15", "-plugin", xlatest.Path(t), "-options", "cpu_device_count=1"}, args...)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		cfg, err := parse(args, io.Discard)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, tune(t.Context(), c, cfg, &out))
		if c.Rank() == 0 {
			said = out.String()
		}
	}, ccltest.Deadline(3*time.Minute))
	for _, m := range held.FindAllStringSubmatch(said, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		scores = append(scores, x)
	}
	return scores, said
}

// A model is scored, tuned by adapters, scored again, and written: what is read back has the score that it was written with.
func TestTune(t *testing.T) {
	base, lora := filepath.Join(t.TempDir(), "base"), filepath.Join(t.TempDir(), "lora")
	scores, said := tuned(t, 1, "-model", "testdata/tiny", "-lora", "", "-steps", "30", "-out", base, "-prompt", "1 plus 1 is")
	require.Contains(t, said, "has no weights: beginning with random ones")
	require.Regexp(t, `(?s)"1 plus 1 is.*"1 plus 1 is.*wrote `, said)
	require.Less(t, scores[2], scores[0]-2)
	then, _ := tuned(t, 2, "-model", filepath.Join(base, "merged"), "-zero", "3", "-steps", "15", "-out", lora)
	require.InDelta(t, scores[2], then[0], 1e-4)
	require.Less(t, then[1], then[0])
	last, _ := tuned(t, 1, "-model", filepath.Join(lora, "merged"), "-lora", "", "-steps", "1", "-log", "1")
	require.InDelta(t, then[1], last[0], 1e-4)
	four, _ := tuned(t, 1, "-model", filepath.Join(base, "merged"), "-base", "nf4", "-steps", "15", "-micro", "2")
	require.InDelta(t, then[0], four[0], .3)
	require.Less(t, four[1], four[0])
}

func TestParseErrors(t *testing.T) {
	for args, want := range map[string]string{"-model": "flag needs an argument", "-data": "flag needs an argument"} {
		_, err := parse([]string{args}, io.Discard)
		require.ErrorContains(t, err, want)
	}
	_, err := parse(nil, io.Discard)
	require.EqualError(t, err, "give -model, a directory of Hugging Face's, and -data, a file of JSON lines")
	_, err = parse([]string{"-model", "x", "-data", "y", "-rank", "0"}, io.Discard)
	require.EqualError(t, err, "-rank 0: it must be at least 1")
}
