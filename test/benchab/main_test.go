package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is a program that stands in for bench.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "bench")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return path
}

// The answer is what bench ab says last; slower by more than the threshold is no failure of it.
func TestAB(t *testing.T) {
	said, err := ab([2]string{script(t, `echo "# round 1"; echo "slower: $*"; exit 3`), "new"}, "10", []string{"-rounds=9", "--", "-np", "2"})
	require.NoError(t, err)
	require.Regexp(t, `^slower: ab -env=GOCCL_TEST_SLOWDOWN=10 -rounds=9 /\S+/bench new -- -np 2$`, said)

	_, err = ab([2]string{script(t, `exit 1`), "new"}, "0", nil)
	require.ErrorContains(t, err, "exit status 1")
}

// The answer is what bench compare says first of changes, of the runs of both sides; only the new ones are slowed down.
func TestStored(t *testing.T) {
	bench := script(t, `
if [ "$1" = compare ]; then
	echo "differs: env"
	echo "a: slower: $(cat $2 | tr -d '\n') $(cat $3 | tr -d '\n')"
	exit 3
fi
echo "<$GOCCL_TEST_SLOWDOWN>" > "$4"`)
	t.Setenv(variable, "")
	said, err := stored([2]string{bench, bench}, "100", nil)
	require.NoError(t, err)
	require.Equal(t, "a: slower: <><><><><> <100><100><100><100><100>", said)
}
