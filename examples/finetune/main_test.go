//go:build xla && cgo && linux

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/data/bpe"
	"github.com/goccl/goccl/xla/nn/models"
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
	base, lora := filepath.Join(t.TempDir(), "base[1]"), filepath.Join(t.TempDir(), "lora")
	scores, said := tuned(t, 1, "-model", "testdata/tiny", "-lora", "", "-steps", "30", "-out", base, "-prompt", "1 plus 1 is")
	require.Contains(t, said, "has no weights: beginning with random ones")
	require.Regexp(t, `(?s)"1 plus 1 is.*"1 plus 1 is.*wrote `, said)
	require.Less(t, scores[2], scores[0]-2)
	config, err := os.ReadFile(filepath.Join(base, "merged", "config.json"))
	require.NoError(t, err)
	require.Contains(t, string(config), `"eos_token_id": 256`)
	then, _ := tuned(t, 2, "-model", filepath.Join(base, "merged"), "-zero", "3", "-steps", "15", "-out", lora)
	require.InDelta(t, scores[2], then[0], 1e-4)
	require.Less(t, then[1], then[0])
	last, _ := tuned(t, 1, "-model", filepath.Join(lora, "merged"), "-lora", "", "-steps", "1", "-log", "1")
	require.InDelta(t, then[1], last[0], 1e-4)
	four, _ := tuned(t, 1, "-model", filepath.Join(base, "merged"), "-base", "nf4", "-steps", "15", "-micro", "2", "-chunk", "20")
	require.InDelta(t, then[0], four[0], .3)
	require.Less(t, four[1], four[0])
}

func TestParseErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-model":                                     "flag needs an argument",
		"":                                           "give -model, a directory of Hugging Face's, and -data, a file of JSON lines",
		"-model x -data y -rank 0":                   "-rank 0: it must be at least 1",
		"-model x -data y -zero 4":                   "-zero 4: the stages are 0 to 3",
		"-model x -data y -lr NaN":                   "-lr NaN -clip 1: -lr must be greater than 0",
		"-model x -data y -warmup -1":                "-warmup -1 -every 0: both must be at least 0",
		"-model x -data y -resume":                   "-every and -resume need -save",
		"-model x -data y -save z -every 15":         "-every 15: it must be a multiple of -log 10",
		"-model x -data y -temperature -1":           "sample: temperature -1",
		"-model x -data y -top-p 1.5":                "top-p 1.5",
		"-model x -data y -chunk -1":                 "-chunk -1: it must be at least 0",
		"-model x -data y -lora= -base nf4":          `-base is for adapters, and with -lora "" there are none`,
		"-model x -data y -lora= -rslora -prompt hi": `-rslora is for adapters`,
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
}

// What would be another run than was meant is refused before it is computed.
func TestRefused(t *testing.T) {
	bin, taken := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(bin, os.DirFS("testdata/tiny")))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pytorch_model.bin"), nil, 0o666))
	require.NoError(t, os.Mkdir(filepath.Join(taken, "merged"), 0o777))
	for args, want := range map[string]string{
		"-model " + bin:                               "has the weights pytorch_model.bin, and no model.safetensors",
		"-model testdata/tiny -out " + taken:          "merged is there already: name another directory",
		"-model testdata/tiny -lora q_proj,lm_head":   "no linear module of the model is called lm_head",
		"-model testdata/tiny -lora q_proj,,v_porj":   "no linear module of the model is called v_porj",
		"-model testdata/tiny -rows 3 -micro 2":       "-rows 3 does not divide among 1 ranks x -micro 2",
		"-model testdata/tiny -data testdata/nothing": "no such file",
		"-model meta-llama/Llama-3.2-1B":              "-model meta-llama/Llama-3.2-1B: there is no such directory here",
		"-model testdata/tiny -kind text":             `-kind text wants lines of {"text"}: `,
	} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			cfg, err := parse(append([]string{"-data", "testdata/train.jsonl", "-context", "32", "-plugin", xlatest.Path(t)}, strings.Fields(args)...), io.Discard)
			require.NoError(t, err)
			require.ErrorContains(t, tune(t.Context(), c, cfg, io.Discard), want, args)
		}, ccltest.Deadline(3*time.Minute))
	}
}

// What ends a text is what the model says; the names of tokenizers are for models that say nothing.
func TestEndings(t *testing.T) {
	tok, err := bpe.Read("testdata/tiny/tokenizer.json")
	require.NoError(t, err)
	for _, tc := range []struct {
		config, generation string
		want               []int32
	}{
		{`{}`, "", []int32{256}}, // <|endoftext|>
		{`{"eos_token_id":null}`, `{"eos_token_id":null}`, []int32{256}},
		{`{"eos_token_id":7}`, "", []int32{7}},
		{`{"eos_token_id":7}`, `{"eos_token_id":[9,7]}`, []int32{9, 7}},
		{`{"eos_token_id":[3, 4]}`, `{}`, []int32{3, 4}},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(tc.config), 0o666))
		if tc.generation != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(tc.generation), 0o666))
		}
		c := &config{}
		c.model = dir
		got, err := (&tuner{c: c, tok: tok}).endings()
		require.NoError(t, err)
		require.Equal(t, tc.want, got, tc)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"eos_token_id":"</s>"}`), 0o666))
	c := &config{}
	c.model = dir
	_, err = (&tuner{c: c, tok: tok}).endings()
	require.ErrorContains(t, err, "config.json: json: cannot unmarshal string")
}

// A model that chats is asked by its template, and others continue the text.
func TestPrompt(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"),
		[]byte("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"), 0o666))
	tok, err := bpe.Read("testdata/tiny/tokenizer.json")
	require.NoError(t, err)
	for kind, want := range map[string]string{"completion": "hi", "text": "hi", "chat": "<user>hi<assistant>"} {
		c := &config{}
		c.model, c.kind, c.prompt = dir, kind, "hi"
		ids, err := (&tuner{c: c, tok: tok}).prompt()
		require.NoError(t, err)
		require.Equal(t, tok.Encode(want, kind != "chat"), ids)
	}
}

// A row has context tokens and the one behind: what is longer is cut, and said.
func TestCut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"text":"1234567"}`+"\n"+`{"text":"12345678"}`+"\n"+`{"text":"1"}`), 0o666))
	for context, want := range map[int]int{6: 2, 7: 1, 8: 0} {
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			c := &config{}
			c.kind, c.context = "text", context
			x := &tuner{c: c, world: world, ends: []int32{256}}
			var err error
			x.tok, err = bpe.Read("testdata/tiny/tokenizer.json")
			require.NoError(t, err)
			x.of, err = models.Read("testdata/tiny")
			require.NoError(t, err)
			s, err := x.rowsOf(t.Context(), file)
			require.NoError(t, err)
			require.Equal(t, want, s.cut())
			require.NoError(t, s.f.Close())
		})
	}
}
