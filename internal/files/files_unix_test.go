//go:build unix

package files

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func makePipe(t *testing.T, name string) error { return syscall.Mkfifo(name, 0o600) }

// A second name may be a hard link to any file of the user's.
func TestSecondName(t *testing.T) {
	dir := t.TempDir()
	key, name := filepath.Join(dir, "key"), filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(key, []byte("mine"), 0o600))
	require.NoError(t, os.Link(key, name))
	for _, err := range []error{Writable(name), Write(name, nil)} {
		require.ErrorContains(t, err, "it has a second name, a hard link: remove it, or give another name")
	}
	text, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))

}

func TestFilesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a file of another user's needs root's rights: run as root")
	}
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("theirs"), 0o600))
	require.NoError(t, os.Chown(name, 2000, 2000))
	require.ErrorContains(t, Write(name, nil), "it belongs to another user: remove it, or give another name")
	_, err := Append(name)
	require.ErrorContains(t, err, "it belongs to another user")
}

// Whatever is swapped in, at whichever moment, no call waits, none reads from what is no file, and none writes through a link.
func TestSwaps(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("victim"), []byte("precious"), 0o600))
	name := at("file")
	plant := []func(tmp string) error{
		func(tmp string) error { return os.WriteFile(tmp, []byte("file"), 0o600) },
		func(tmp string) error { return syscall.Mkfifo(tmp, 0o600) },
		func(tmp string) error { return os.WriteFile(tmp, []byte("file"), 0o600) },
		func(tmp string) error { return os.Symlink(at("victim"), tmp) },
		func(tmp string) error { return os.WriteFile(tmp, []byte("file"), 0o600) },
		func(tmp string) error { return os.Link(at("victim"), tmp) },
	}
	var stop atomic.Bool
	swapped := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil && !stop.Load(); i++ {
			if err = plant[i%len(plant)](at("next")); err == nil {
				err = os.Rename(at("next"), name)
			}
			os.Remove(at("next")) // which Rename leaves where both are names of one file
		}
		swapped <- err
	}()
	opened := 0
	for i := 0; (i < 1000 || opened < 100) && len(swapped) == 0; i++ { // which has an error only if swapping fails
		text, err := Read(name, 100)
		if err == nil {
			opened++
			require.Contains(t, []string{"file", "precious", "x", ""}, string(text))
		}
		if text, err = ReadIn(dir, "file", 100); err == nil {
			require.Contains(t, []string{"file", "precious", "x", ""}, string(text))
		}
		_ = Writable(name)
		_ = Write(name, []byte("x"))
	}
	stop.Store(true)
	require.NoError(t, <-swapped)
	text, err := os.ReadFile(at("victim"))
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))
}
