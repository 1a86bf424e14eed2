//go:build unix

package boot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/files"
)

// What another account has left where a rank's log would be is neither followed nor waited for: no rank starts.
func TestSpawnLogsAreNobodyElses(t *testing.T) {
	for name, plant := range map[string]func(mine, log string) error{
		"a link":          os.Symlink,
		"a link to a dir": func(mine, log string) error { return os.Symlink(filepath.Dir(mine), log) },
		"a pipe":          func(_, log string) error { return unix.Mkfifo(log, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			mine := filepath.Join(t.TempDir(), "authorized_keys")
			require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
			c, out := troupe(t, 2, "echo")
			c.Logs = t.TempDir()
			require.NoError(t, plant(mine, filepath.Join(c.Logs, "rank-1.log")))
			done := make(chan error, 1)
			go func() { done <- Spawn(within(t, long), c) }()
			select {
			case err := <-done:
				require.ErrorContains(t, err, "the log of rank 1 cannot be made")
				require.ErrorContains(t, err, files.ErrNotRegular.Error())
			case <-within(t, long).Done():
				t.Fatal("Spawn waits for a pipe")
			}
			require.Empty(t, out.String())
			text, err := os.ReadFile(mine)
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
		})
	}
}
