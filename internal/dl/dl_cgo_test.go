//go:build cgo && linux

package dl_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
)

const env = "GOCCL_DL_TEST_LIB"

func TestOpen(t *testing.T) {
	for _, global := range []bool{false, true} {
		l, err := dl.Search{What: "C", Env: env, Names: []string{"libnone.so.1", "libc.so.6"}, Global: global}.Open()
		require.NoError(t, err)
		require.Equal(t, "libc.so.6", l.Name())
		require.True(t, filepath.IsAbs(l.Path()), l.Path())
		require.NotZero(t, l.Handle())
		require.NotZero(t, l.Symbol("getpid"))
		require.Zero(t, l.Symbol("no_such_symbol"))
	}
}

func TestOpenSaysWhatWasTried(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	_, err := dl.Search{What: "X", Env: env, Names: []string{"libnone.so.1", text}}.Open()
	var failed *dl.Error
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.Attempts, 2)
	require.Equal(t, "libnone.so.1", failed.Attempts[0].Name)
	require.Contains(t, failed.Attempts[0].Text, "No such file")
	require.Contains(t, failed.Attempts[1].Text, "file too short")
}

// The loader would open another file than is named, or wait.
func TestOpenable(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.so")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for name, want := range map[string]string{
		"":                    `"" is no name of a file`,
		"libc.so.6\x00.txt":   `"libc.so.6\x00.txt" is no name of a file`,
		dir:                   "it is no regular file",
		pipe:                  "it is no regular file",
		"/dev/zero":           "it is no regular file",
		"/proc/self/cwd\x00/": "is no name of a file",
	} {
		_, err := dl.Search{What: "X", Names: []string{name}}.Open()
		require.ErrorContains(t, err, want)
	}
}

// A name without a folder is looked for where the loader looks, and not where the program was started: what lies there may be anybody's.
func TestNotFromHere(t *testing.T) {
	libc, err := dl.Search{What: "C", Names: []string{"libc.so.6"}}.Open()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(libc.Path(), filepath.Join(dir, "libplanted.so")))
	t.Chdir(dir)
	t.Setenv("LD_LIBRARY_PATH", "")
	for _, name := range []string{"libplanted.so", "~/libplanted.so", "$ORIGIN/libplanted.so"} {
		_, err = dl.Search{What: "X", Names: []string{name}}.Open()
		require.Error(t, err, name)
		t.Setenv(env, name)
		_, err = dl.Search{What: "X", Env: env}.Open()
		require.Error(t, err, name)
	}
	_, err = dl.Search{What: "X", Names: []string{"./libplanted.so"}}.Open() // as the user says
	require.NoError(t, err)
}

func TestOpenVariableAlone(t *testing.T) {
	t.Setenv(env, "/no/such/lib.so")
	_, err := dl.Search{What: "C", Env: env, Names: []string{"libc.so.6"}}.Open()
	require.EqualError(t, err, "C cannot be loaded: "+env+"=/no/such/lib.so: cannot open shared object file: No such file or directory")

	t.Setenv(env, "libc.so.6")
	l, err := dl.Search{What: "C", Env: env, Names: []string{"libnone.so.1"}}.Open()
	require.NoError(t, err)
	require.Equal(t, "libc.so.6", l.Name())
}
