//go:build unix

package boot

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// In a directory for all, a store whose name is taken is refused to all processes alike: none has one of its own.
func TestStoreNameTaken(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"a directory where all may write": func(path string) error {
			if err := os.Mkdir(path, 0o777); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"a file":                           func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link":                           func(path string) error { return os.Symlink(t.TempDir(), path) },
		"nothing, and then the user's own": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
			require.NoError(t, plant(filepath.Join(dir, ofUser("goccl"))))
			all, errs := make([]Store, 4), make([]error, 4)
			var wg sync.WaitGroup
			for i := range all {
				wg.Go(func() { all[i], errs[i] = FileStore(dir, hallSecret) })
			}
			wg.Wait()
			own := strings.HasPrefix(name, "nothing")
			for i, err := range errs {
				if own {
					require.NoError(t, err)
					require.NoError(t, all[i].Set(t.Context(), "k", nil))
					continue
				}
				require.ErrorIs(t, err, Unauthorized)
				require.ErrorContains(t, err, filepath.Join(dir, ofUser("goccl"))+", the store of this user in a directory of all users, was made by somebody else")
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1)
			if own {
				_, err = all[0].Get(t.Context(), "k")
				require.NoError(t, err)
			}
		})
	}
}
