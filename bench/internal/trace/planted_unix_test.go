//go:build unix

package trace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trace file that is a pipe or leads to a device is told and left out, and a timeline goes through no link.
func TestPlantedTraces(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(at("pipe.jsonl"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", at("zero.jsonl")))
	require.NoError(t, os.Mkdir(at("dir.jsonl"), 0o700))
	var told []string
	lines, err := readDir(dir, func(s string) { told = append(told, s) })
	require.NoError(t, err)
	require.Empty(t, lines)
	require.Len(t, told, 3)
	for _, s := range told {
		require.True(t, strings.HasSuffix(s, "it is not a regular file"), s)
	}
	require.NoError(t, os.WriteFile(at("mine"), []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(at("mine"), at("timeline")))
	require.ErrorContains(t, save(at("timeline"), &timeline{}), "a link")
	text, err := os.ReadFile(at("mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}
