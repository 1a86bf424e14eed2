package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory is filled once, is there when it is complete, and leaves nothing behind where that fails; of two that fill it
// the first counts.
func TestDir(t *testing.T) {
	base := t.TempDir()
	t.Setenv("GOCCL_CACHE", base)
	write := func(text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), []byte(text), 0o600) }
	}
	broken := errors.New("no network")
	_, err := Dir("a/b", func(dir string) error { return errors.Join(write("half")(dir), broken) })
	require.ErrorIs(t, err, broken)
	dir, err := Dir("a/b", func(dir string) error {
		_, err := Dir("a/b", write("first"))
		return errors.Join(err, write("second")(dir))
	})
	require.NoError(t, err)
	again, err := Dir("a/b", func(string) error { return errors.New("it is there") })
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(base, "a", "b"), dir}, []string{dir, again})
	text, err := os.ReadFile(filepath.Join(dir, "x"))
	require.NoError(t, err)
	require.Equal(t, "first", string(text))
	left, err := os.ReadDir(filepath.Join(base, "a"))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
