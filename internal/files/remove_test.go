package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/files"
)

// A file that is made in a directory while that is removed goes with it: 200 times, at every moment.
func TestRemoveAll(t *testing.T) {
	for i := range 200 {
		dir := filepath.Join(t.TempDir(), "gone")
		require.NoError(t, os.Mkdir(dir, 0o777))
		for k := range 20 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(k)), nil, 0o666))
		}
		at, err := os.OpenRoot(dir)
		require.NoError(t, err)
		made := make(chan struct{})
		go func() {
			defer close(made)
			for k := range i % 5 {
				if f, err := at.Create(fmt.Sprint("late", k)); err == nil {
					f.Close()
				}
			}
		}()
		require.NoError(t, files.RemoveAll(dir))
		<-made
		at.Close()
		require.NoDirExists(t, dir)
	}
}
