//go:build unix

package boot

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a rank 0 that was killed has left does not keep the next from listening there.
func TestPrivatePlaceIsFreed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/nonexistent")
	require.NoError(t, os.Chmod(dir, 0o700))
	p := privatePlaces{name: ".x", getenv: func(string) string { return dir }}
	path := filepath.Join(dir, ".x")
	dead, err := net.Listen("unix", path)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	alive := privatePlaces{name: ".y", getenv: p.getenv}
	busy := alive.listen()
	require.NotNil(t, busy)
	defer busy.Close()
	require.NoError(t, dead.Close())
	l := p.listen()
	require.NotNil(t, l)
	require.Equal(t, path, l.Addr().String())
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
	require.Nil(t, alive.listen(), "somebody listens there")
}

// Rank 0 writes where the others look first, in whatever directories of its user there are.
func TestStoreDirs(t *testing.T) {
	dir := t.TempDir()
	in, err := makeStoreDir(dir)
	require.NoError(t, err)
	require.Equal(t, dir, in, "nobody else may write there")
	require.Equal(t, []string{dir}, storeDirs(dir))

	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	require.Empty(t, storeDirs(dir))
	own := filepath.Join(dir, ofUser("goccl"))
	for _, plant := range []func() error{
		func() error { return nil },
		func() error { return os.Mkdir(own+"-0", 0o700) },
		func() error { return os.Mkdir(own+"-1", 0o777) },
		func() error { return os.Chmod(own+"-1", 0o777) }, // whatever the umask
		func() error { return os.WriteFile(own+"-2", nil, 0o600) },
		func() error { return os.Symlink(own, own+"-3") },
		func() error { return os.Mkdir(own+"x", 0o700) },
	} {
		require.NoError(t, plant())
		in, err := makeStoreDir(dir)
		require.NoError(t, err)
		require.Equal(t, own, in)
		require.Equal(t, own, storeDirs(dir)[0])
	}
	require.Equal(t, []string{own, own + "-0"}, storeDirs(dir))

	require.NoError(t, os.Chmod(own, 0o777)) // as somebody else's
	require.NoError(t, os.Remove(own+"-0"))
	in, err = makeStoreDir(dir)
	require.NoError(t, err)
	require.Equal(t, []string{in}, storeDirs(dir))
	again, err := makeStoreDir(dir)
	require.NoError(t, err)
	require.Equal(t, in, again)
}
