package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trial is what bench ab says last; slower by more than the threshold is no failure of it.
func TestTrial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "ab")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
		return path
	}
	said, err := trial([2]string{script(`echo "# round 1"; echo "slower: $*"; exit 3`), "new"}, []string{"ab", "-rounds=9", "--", "-np", "2"})
	require.NoError(t, err)
	require.Regexp(t, `^slower: ab -rounds=9 /\S+/ab new -- -np 2$`, said)

	_, err = trial([2]string{script(`exit 1`), "new"}, []string{"ab"})
	require.ErrorContains(t, err, "exit status 1")
}
