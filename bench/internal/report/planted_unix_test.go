//go:build unix

package report

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/files"
)

// What others have left in the place of a file of results is neither waited for, nor followed, nor read without end.
func TestPlantedResults(t *testing.T) {
	for name, plant := range map[string]func(mine, path string) error{
		"a pipe":             func(_, path string) error { return syscall.Mkfifo(path, 0o666) },
		"a link to a pipe":   func(mine, path string) error { return os.Symlink(mine+".pipe", path) },
		"a link to a device": func(_, path string) error { return os.Symlink("/dev/zero", path) },
		"a link to a file":   os.Symlink,
		"a hard link":        os.Link,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mine, path := filepath.Join(dir, "mine"), filepath.Join(dir, "latency.svg")
			require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
			require.NoError(t, syscall.Mkfifo(mine+".pipe", 0o600))
			require.NoError(t, plant(mine, path))
			_, _, err := Load(path)
			if name == "a link to a file" || name == "a hard link" {
				require.ErrorContains(t, err, "it is not a file that -J writes") // the user has named it
			} else {
				require.ErrorIs(t, err, files.ErrNotRegular)
			}
			f := &File{}
			require.ErrorContains(t, Writable("J", path), "-J "+path+": it cannot be written: it ")
			require.ErrorContains(t, f.Save("J", path, (*File).JSON), "the results could not be written: it ")
			text, err := os.ReadFile(mine)
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
		})
	}
}
