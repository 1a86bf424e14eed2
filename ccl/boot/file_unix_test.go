//go:build unix

package boot

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What somebody has left where rank 0 would write its place, or the secret, holds up no rank beyond
// its context, whatever it is; and rank 0 puts its own there.
func TestFileInTheWay(t *testing.T) {
	for name, leave := range map[string]func(path string) error{
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o666) },
		"own pipe":  func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"nonsense":  func(path string) error { return os.WriteFile(path, []byte("nonsense"), 0o600) },
		"of others": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			dir := t.TempDir()
			sum := sha256.Sum256([]byte("job"))
			path := filepath.Join(dir, "goccl-"+hex.EncodeToString(sum[:8]))
			require.NoError(t, leave(path))
			done := make(chan [2]error, 1)
			go func() {
				_, secret := readSecretFile(path) // what is read as the job's secret is read in the same way
				_, file := File(within(t, 300*time.Millisecond), dir, "job", 1, 2)
				done <- [2]error{secret, file}
			}()
			select {
			case errs := <-done:
				require.ErrorIs(t, errs[1], Timeout)
				if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
					require.ErrorIs(t, errs[0], Unauthorized)
					require.ErrorContains(t, errs[0], "is not a regular file; remove it")
				}
			case <-time.After(long):
				t.Fatal("File has not returned, long after its context's end")
			}
			boots := joined(t, 2, func(r int) (*Boot, error) { return File(within(t, long), dir, "job", r, 2) })
			swap(t, boots)
		})
	}
}
