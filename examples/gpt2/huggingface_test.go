package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What config.json says is the model, or why this program does not have it.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config.json")
	_, err := parse([]string{"-hf", dir}, io.Discard)
	require.ErrorContains(t, err, "-hf: open "+name)
	for text, want := range map[string]string{
		`{`:                      "unexpected end of JSON",
		`{"model_type":"llama"}`: `the model is a "llama"; this program knows gpt2`,
		`{"model_type":"gpt2","activation_function":"relu"}`: `the activation is "relu"`,
		`{"model_type":"gpt2","n_inner":100}`:                "n_inner is 100, not four times n_embd",
		`{"model_type":"gpt2","tie_word_embeddings":false}`:  "tie_word_embeddings false",
		`{"model_type":"gpt2","layer_norm_epsilon":1e-6}`:    "layer_norm_epsilon 1e-06",
		`{"model_type":"gpt2","n_embd":100}`:                 "-heads 12 does not divide -width 100",
		`{"model_type":"gpt2","n_layer":-1}`:                 "-layers -1: it must be at least 1",
		`{"model_type":"gpt2","n_head":0}`:                   "-heads 0: it must be at least 1",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := parse([]string{"-hf", dir}, io.Discard)
		require.ErrorContains(t, err, want, text)
	}
	require.NoError(t, os.WriteFile(name, []byte(`{"model_type":"gpt2","n_inner":null}`), 0o600))
	c, err := parse([]string{"-hf", dir}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 124_439_808, c.count(), "as OpenAI's smallest")
	_, err = parse([]string{"-hf", dir, "-layers", "2"}, io.Discard)
	require.EqualError(t, err, "-layers does not go with -hf, which says what the model is")
}
