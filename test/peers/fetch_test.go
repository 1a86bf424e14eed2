package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
)

// Of two processes that fetch the same at once the second leaves what the first has put into the cache: a third may
// be reading it.
func TestFetchAtOnce(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("hardware: no bash")
	}
	cache.Whole()
	bin, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		// pip makes its target. What the script tries then is when the other process ends.
		"python3": `while [ $# -gt 0 ]; do if [ "$1" = --target ]; then mkdir -p "$2/torch/lib"; exit; fi; shift; done
mkdir -p "$THEIRS" && touch "$THEIRS/ready" "$THEIRS/theirs"`,
		"readelf": "exit 0",
		"cc":      "exit 1",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	for _, tc := range []struct{ script, dir string }{
		{"torch", "torch-2.15.0"}, {"transformers", "transformers-5.24.0"}, {"../text", "text-1"},
	} {
		theirs := filepath.Join(dir, tc.dir)
		c := exec.Command("bash", filepath.Join(tc.script, "fetch.sh"))
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOCCL_CACHE="+dir, "THEIRS="+theirs)
		c.Stderr = os.Stderr
		out, err := c.Output()
		require.NoError(t, err, tc.script)
		require.Contains(t, string(out), theirs)
		require.FileExists(t, filepath.Join(theirs, "theirs"), tc.script)
		left, err := filepath.Glob(filepath.Join(dir, ".fetch*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
