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
		`{`: "unexpected end of JSON",
		`{"model_type":"gpt2","activation_function":"x"}`: `the activation is "x"`,
		`{"model_type":"gpt2","layer_norm_epsilon":0}`:    "the epsilon of norms is 0",
		`{"model_type":"gpt2","n_embd":100}`:              "n_embd is 100: not a multiple of n_head, 12",
		`{"model_type":"gpt2","n_layer":-1}`:              "n_layer is -1",
		`{"model_type":"gpt2","n_head":0}`:                "n_head is 0",
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
