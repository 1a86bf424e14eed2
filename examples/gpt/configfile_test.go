package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file says what the command line leaves open.
func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, "config")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	good := file("# a run\npreset = babygpt\nlr 3e-4   # peak\n-steps 7\n\ttied\nbf16 = False\nsample = \"To be # or\"\ndata='a b.txt'\n\n")
	c, err := parse([]string{"-config", good, "-steps", "9"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 384, c.Width, "the preset")
	require.Equal(t, 3e-4, c.lr)
	require.Equal(t, 9, c.steps, "the command line comes first")
	require.True(t, c.Tied)
	require.False(t, c.held.bf16)
	require.Equal(t, "To be # or", c.draws.sample)
	require.Equal(t, "a b.txt", c.data)
	for text, want := range map[string]string{
		"steps 3\nlearning_rate = 1": ":2: learning_rate: no such flag (-h lists them)",
		"config x":                   ":1: config: no such flag",
		"steps\n":                    ":1: steps: it needs a value",
		"steps = # none":             ":1: steps: it needs a value",
		"steps 3\nsteps 4":           ":2: steps: line 1 has it already",
		"steps many":                 ":1: steps: parse error",
		"sample \"a":                 `:1: sample: "a is no text in quotes`,
		"sample 'a' b":               `:1: sample: 'a' b is no text in quotes`,
		"zero 4":                     "-zero 4: the stages are 0 to 3",
		"tied = perhaps":             ":1: tied: parse error",
		"= 3":                        ":1: : no such flag",
		"steps 3\x00\n":              ":1: steps: parse error",
		"\xff\xfe":                   "no such flag",
	} {
		_, err := parse([]string{"-config", file(text)}, io.Discard)
		require.ErrorContains(t, err, want, "%q", text)
	}
	_, err = parse([]string{"-config", filepath.Join(dir, "none")}, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever is in a file, it is read or refused.
func FuzzConfigFile(f *testing.F) {
	f.Add("steps = 3 # x\ntied\ndata 'a b'\n")
	f.Add("=\n\"\n-\n#")
	f.Fuzz(func(t *testing.T, text string) {
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		set.Int("steps", 1, "")
		set.Bool("tied", false, "")
		set.String("data", "", "")
		if err := configure(set, "file", []byte(text)); err != nil && len(err.Error()) > 2*len(text)+1000 {
			t.Fatal("the error is longer than the file")
		}
	})
}
