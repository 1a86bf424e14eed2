package boot

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hall whose disk is full for a while refuses what it cannot write, and keeps what it takes before and afterwards.
func TestHallFileOnAFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hall")
	h, err := ListenHallFile("127.0.0.1:0", nil, file)
	require.NoError(t, err)
	require.NoError(t, h.Set(t.Context(), "before", nil))
	signal.Ignore(syscall.SIGXFSZ) // a file may only become so long
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	short := syscall.Rlimit{Cur: 1 << 10, Max: old.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &short))
	full := h.Set(t.Context(), "full", []byte(strings.Repeat("x", 4<<10)))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	require.Error(t, full)
	require.False(t, h.has("full"))
	require.NoError(t, h.Set(t.Context(), "after", nil))
	require.NoError(t, h.Close())
	again, err := ListenHallFile("127.0.0.1:0", nil, file)
	require.NoError(t, err)
	defer again.Close()
	require.True(t, again.has("before"))
	require.True(t, again.has("after"))
	require.False(t, again.has("full"))
}

// A file that others could read, or have written, is refused.
func TestHallFileIsPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hall")
	require.NoError(t, os.WriteFile(file, logEntry(request{what: askAdd, key: "a", n: 1}), 0o600))
	for _, mode := range []os.FileMode{0o644, 0o620, 0o600} {
		require.NoError(t, os.Chmod(file, mode))
		h, err := ListenHallFile("127.0.0.1:0", nil, file)
		if mode != 0o600 {
			require.Equal(t, System, asError(err).Code)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, h.Close())
	}
}
