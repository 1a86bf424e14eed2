package files

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// squashed runs f as root whose files become another user's, as a file server does it that does not trust root.
func squashed(t *testing.T, as int, f func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if err := syscall.Setfsuid(as); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Root writes its own file again where all of root's files are nobody's, and there, too, no file that others can write to.
func TestRootIsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's files become another user's: run as root")
	}
	const nobody = 65534
	dir := t.TempDir()
	require.NoError(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)))
	name := filepath.Join(dir, "results.json")
	write := func(text string) error {
		return squashed(t, nobody, func() error { return errors.Join(Writable(name), Write(name, []byte(text))) })
	}
	require.NoError(t, write("first, and long"))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.EqualValues(t, nobody, info.Sys().(*syscall.Stat_t).Uid)
	require.NoError(t, write("second"))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left of finding that out")

	require.ErrorContains(t, Write(name, nil), "it belongs to another user", "to root as such it does")
	for _, mode := range []os.FileMode{0o620, 0o602} {
		require.NoError(t, os.Chmod(name, mode))
		require.ErrorContains(t, write("x"), "it belongs to another user", mode)
	}
	require.NoError(t, os.Chmod(name, 0o666))
	require.NoError(t, os.Chown(name, 2000, 2000))
	require.ErrorContains(t, write("x"), "it belongs to another user")
	require.NoError(t, errors.Join(os.Chown(name, nobody, nobody), os.Chmod(name, 0o600), os.Link(name, name+".2")))
	require.ErrorContains(t, write("x"), "it has a second name")
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
}
