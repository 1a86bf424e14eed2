//go:build unix

package blame

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// A process names one rank, once, and into the launcher's pipe alone.
func TestName(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	var st syscall.Stat_t
	require.NoError(t, syscall.Fstat(int(w.Fd()), &st))
	other, err := os.Create(filepath.Join(t.TempDir(), "a file of the program's"))
	require.NoError(t, err)
	defer other.Close()

	Name(9) // no launcher wants to know
	t.Setenv(environ.BlameFD.Name, Value(int(other.Fd()), uint64(st.Ino)))
	Name(8)
	info, err := other.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size(), "another file of that number is left alone")

	told.Store(false)
	t.Setenv(environ.BlameFD.Name, Value(int(w.Fd()), uint64(st.Ino)))
	Name(3)
	Name(2)
	Unused() // in no place of a launcher's
	t.Setenv(environ.Rank.Name, "4")
	Unused()
	t.Setenv(environ.Newcomer.Name, "5.2") // in the place of rank 5
	Unused()
	require.NoError(t, w.Close())
	text := make([]byte, 100)
	n, err := r.Read(text)
	require.NoError(t, err)
	require.Equal(t, "3\nunused 4\nunused 5\n", string(text[:n]))
	told.Store(false)
}
