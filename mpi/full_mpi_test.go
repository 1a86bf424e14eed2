//go:build mpi && cgo

package mpi_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestFullDisk writes more than a disk of 1 MiB has room for, which test/mpi makes: the call fails on all ranks if it is
// collective, and nothing says that it was written. Files on a disk that is read-only are neither made nor written.
func TestFullDisk(t *testing.T) {
	full, fixed := os.Getenv("GOCCL_MPI_TEST_FULL"), os.Getenv("GOCCL_MPI_TEST_FIXED")
	if full == "" {
		t.Skip("hardware: no disk of 1 MiB: test/mpi makes one")
	}
	ctx, c := context.Background(), mpi.World()
	file := filepath.Join(full, "file")
	within(t, func() {
		f, err := mpi.OpenFile(ctx, c, file, mpi.ReadWrite|mpi.Create)
		require.NoError(t, err)
		buf := make([]byte, 4<<20)
		n, err := mpi.WriteAtAll(ctx, f, buf, int64(c.Rank()*len(buf)))
		t.Log(n, err)
		full := func(err error) {
			require.ErrorContains(t, err, file)
			var e *mpi.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, []mpi.Class{mpi.ErrNoSpace, mpi.ErrIO, mpi.ErrOther}, e.Class, err)
		}
		full(err)
		if c.Rank() == 0 {
			_, err = mpi.WriteAt(ctx, f, buf, 0)
			t.Log(err)
			full(err)
		}
		require.NoError(t, f.SetSize(ctx, 100))
		n, err = mpi.WriteAtAll(ctx, f, buf[:8], int64(8*c.Rank()))
		require.NoError(t, err, "there is room again")
		require.Equal(t, 8, n)
		require.NoError(t, f.Close())

		_, err = mpi.OpenFile(ctx, c, filepath.Join(fixed, "new"), mpi.ReadWrite|mpi.Create)
		t.Log(err)
		require.Error(t, err)
		_, err = mpi.OpenFile(ctx, c, filepath.Join(fixed, "file"), mpi.ReadWrite)
		t.Log(err)
		require.Error(t, err)
		f, err = mpi.OpenFile(ctx, c, filepath.Join(fixed, "file"), mpi.ReadOnly)
		require.NoError(t, err)
		got := make([]byte, 4)
		_, err = mpi.ReadAtAll(ctx, f, got, 0)
		require.NoError(t, err)
		require.Equal(t, "text", string(got))
		require.NoError(t, f.Close())
	})
}
