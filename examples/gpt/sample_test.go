package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// heading is the line before a sample.
const heading = "\n200 tokens by the model:\n"

// The text at the end is that of one rank in every layout.
func TestSample(t *testing.T) {
	const args = small + "3 -sample 1"
	last := func(out string) string {
		_, text, found := strings.Cut(out, heading)
		require.True(t, found, out)
		return text
	}
	heads := []string{"", " -tied"}
	if testing.Short() {
		heads = heads[1:]
	}
	for _, head := range heads {
		want := last(trained(t, 1, args+head))
		n := utf8.RuneCountInString(want)
		require.True(t, n > 198 && n <= 202, "the prompt, 200 tokens and a newline: %q", want)
		require.True(t, utf8.ValidString(want))
		for _, tc := range []struct {
			n      int
			layout string
		}{{2, "-tp 2 -sp megatron"}, {4, "-pp 4 -micro 2"}, {2, "-sp ulysses=2"}, {4, "-sp ring=2 -pp 2 -zero 3"}, {8, "-tp 2 -pp 2 -sp ring=2"}} {
			require.Equal(t, want, last(trained(t, tc.n, args+head+" "+tc.layout)), tc.layout)
		}
	}
}

// generated is what gpt -generate prints on n ranks, with what rank 0 has for an error.
func generated(t *testing.T, n int, args string) (said string, err error) {
	var out bytes.Buffer
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		c := words(t, "-generate "+args)
		require.NoError(t, c.place(n))
		if failed := (&run{out: &out}).generate(t.Context(), world, c); world.Rank() == 0 {
			err = failed
		}
	})
	return out.String(), err
}

// A checkpoint continues a text without training, data or flags of its model, as the run that has saved it did, in any layout.
func TestGenerate(t *testing.T) {
	const heading30 = "\n30 tokens by the model:\n"
	dir := filepath.Join(t.TempDir(), "c")
	_, want, _ := strings.Cut(trained(t, 2, small+"2 -tied -zero 3 -every 1 -save "+dir+" -sample 1 -tokens 30"), heading30)
	for _, tc := range []struct {
		n      int
		layout string
	}{{1, ""}, {2, "-tp 2"}, {4, "-pp 2"}, {3, ""}} {
		out, err := generated(t, tc.n, "-save "+dir+" -sample 1 -tokens 30 "+tc.layout)
		require.NoError(t, err, tc.layout)
		require.Equal(t, 1, strings.Count(out, filepath.Join(dir, "step-00000002")+" of "), out)
		require.Contains(t, out, " parameters, after 2 steps\n")
		_, text, _ := strings.Cut(out, heading30)
		require.Equal(t, want, text, tc.layout)
	}
	require.NotEmpty(t, want)
	before, err := generated(t, 1, "-save "+dir+" -sample 1 -from 1 -tokens 20")
	require.NoError(t, err)
	require.Contains(t, before, " after 1 step\n\n20 tokens by the model:\n1")
	for args, text := range map[string]string{
		"-save " + dir + " -sample \x01":      "is not in the data",
		"-save " + dir + "none -sample 1":     "no such file or directory",
		"-save " + dir + " -sample 1 -from 7": "step-00000007",
		"-save " + dir + " -sample 1 -tp 3":   "-tp 3 does not divide 4 heads",
	} {
		n := 1
		if strings.Contains(args, "-tp 3") {
			n = 3
		}
		_, err := generated(t, n, args)
		require.ErrorContains(t, err, text, args)
	}
}

// The likeliest token alone, a few of the likeliest, and all: by their weights, within four standard deviations.
func TestDraw(t *testing.T) {
	logits := []float32{1, 3, 2, -50, 3}
	for _, tc := range []struct {
		temperature float64
		topk        int
		want        []float64
	}{
		{0, 0, []float64{0, 1, 0, 0, 0}}, // the first of those that are alike
		{0, 4, []float64{0, 1, 0, 0, 0}},
		{1, 1, []float64{0, 1, 0, 0, 0}},
		{1, 2, []float64{0, .5, 0, 0, .5}},
		{1, 0, []float64{math.Exp(-2), 1, math.Exp(-1), 0, 1}},
		{1, 5, []float64{math.Exp(-2), 1, math.Exp(-1), 0, 1}},
		{2, 0, []float64{math.Exp(-1), 1, math.Exp(-.5), 0, 1}},
		{1e-3, 0, []float64{0, .5, 0, 0, .5}},
	} {
		c := &config{draws: drawing{temperature: tc.temperature, topk: tc.topk}}
		r := rand.New(rand.NewPCG(1, 2))
		const trials = 20_000
		got := make([]float64, len(logits))
		for range trials {
			got[c.draw(append([]float32(nil), logits...), r.Float32())]++
		}
		sum := 0.
		for _, w := range tc.want {
			sum += w
		}
		for i, w := range tc.want {
			p := w / sum
			require.InDelta(t, p, got[i]/trials, 4*math.Sqrt(p*(1-p)/trials)+1e-9, "%+v: %v", tc, got)
		}
		require.NotEqual(t, int32(3), c.draw(append([]float32(nil), logits...), 1), "what rounding has left")
	}
}

// A sample is text: no half characters, nothing that a terminal obeys.
func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\tb": "a\n\tb", "\x1b[2J": "\uFFFD[2J", "a\xffb": "a\uFFFDb", "\u00e4\xc3": "\u00e4", "x\xe2\x82": "x", "": "", "\r\x7f.": "\uFFFD\uFFFD.",
	} {
		require.Equal(t, want, readable(in), "%q", in)
	}
}
