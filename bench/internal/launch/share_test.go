package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

func TestLocalFiles(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("these are Unix's directories")
	}
	t.Setenv("TMPDIR", "/scratch/tmp")
	for file, want := range map[string]bool{
		"/tmp/go-build1/b001/exe/bench": true, "/scratch/tmp/x": true, "/dev/shm/x": true, "/tmp": true,
		"/home/user/bench": false, "/tmpfiles/bench": false, "/scratch/bench": false,
	} {
		require.Equal(t, want, local(file), file)
	}
}

func TestPlaces(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("these are Unix's directories")
	}
	t.Chdir("/var") // the repository may lie in /tmp, which hosts do not share
	require.Equal(t, []string{"/lustre/pbs", "/var", "/home/user"},
		places(env("PBS_O_WORKDIR=/lustre/pbs", "SLURM_SUBMIT_DIR=/tmp/x", "HOME=/home/user")))
}

func TestShare(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bench")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o755))
	dir := t.TempDir()
	copied, remove, err := share(program, []string{filepath.Join(dir, "no", "such"), dir}, copyFile)
	require.NoError(t, err)
	text, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Equal(t, "program", string(text))
	info, err := os.Stat(filepath.Dir(copied))
	require.NoError(t, err)
	if filepath.Separator == '/' {
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "nobody else may change it")
	}
	remove()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	_, _, err = share(program, nil, copyFile)
	require.ErrorContains(t, err, "-share DIR")
	_, _, err = share(program, []string{filepath.Join(dir, "no", "such")}, copyFile)
	require.ErrorContains(t, err, "-share DIR")
}

func TestVerify(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bench")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o755))
	want, err := sum(program)
	require.NoError(t, err)
	require.NoError(t, verify(program, want))
	require.NoError(t, os.WriteFile(program, []byte("an old one"), 0o755))
	require.ErrorContains(t, verify(program, want), "is not the program that the job was started with")
	require.NoError(t, os.Remove(program))
	require.ErrorContains(t, verify(program, want), "there is no "+program)

	require.NoError(t, Verify(env()))
	require.ErrorContains(t, Verify(env(environ.BenchSum.Name+"=0123")), "is not the program")
	self, err := os.Executable()
	require.NoError(t, err)
	right, err := sum(self)
	require.NoError(t, err)
	require.NoError(t, Verify(env(environ.BenchSum.Name+"="+right)))
	require.Equal(t, right[:16], Sum())
}

// The first rank of a node removes its copy, and only it.
func TestJoined(t *testing.T) {
	file := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(file, nil, 0o755))
	Joined(env(), boot.Launch{Local: 0})
	Joined(env(environ.BenchSpread.Name+"="+file), boot.Launch{Local: 1})
	require.FileExists(t, file)
	Joined(env(environ.BenchSpread.Name+"="+file), boot.Launch{Local: 0})
	require.NoFileExists(t, file)
}
