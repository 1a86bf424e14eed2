package mpi_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// campaign makes the same random calls on all ranks: each knows what the others write.
func campaign(t *testing.T, ctx context.Context, name string, random *rand.Rand) {
	c := mpi.World()
	f, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create, mpi.StripingFactor(1), mpi.CollectiveNodes(1))
	require.NoError(t, err)
	require.Equal(t, name, f.Name())
	want, most := []byte{}, 1500
	steps := 60
	if testing.Short() {
		steps = 15
	}
	for range steps {
		switch all := random.IntN(2) == 0; random.IntN(5) {
		case 0:
			size := random.IntN(2 * most)
			require.NoError(t, f.SetSize(ctx, int64(size)))
			want = append(want, make([]byte, max(0, size-len(want)))...)[:size]
		case 1, 2:
			want = written(t, ctx, f, random, want, most, all)
			require.NoError(t, f.Sync(ctx))
		default:
			read[int8](t, ctx, f, random, want, most, all)
			read[float32](t, ctx, f, random, want, most, all)
			read[int](t, ctx, f, random, want, most, !all)
		}
		size, err := f.Size()
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), size)
		require.NoError(t, mpi.Barrier(ctx, c)) // nobody changes what another still looks at
	}
	require.NoError(t, f.Close())
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want, append([]byte{}, got...))
}

// written has each rank write some of its own stretch of the file, and returns what the file holds then.
func written(t *testing.T, ctx context.Context, f *mpi.File, random *rand.Rand, want []byte, most int, all bool) []byte {
	c := mpi.World()
	stretch := most / c.Size()
	for r := range c.Size() {
		n := random.IntN(stretch)
		at := r*stretch + random.IntN(stretch-n)
		buf := make([]byte, n)
		for i := range buf {
			buf[i] = byte(random.Uint32())
		}
		if n > 0 {
			want = append(want, make([]byte, max(0, at+n-len(want)))...)
			copy(want[at:], buf)
		}
		if r != c.Rank() {
			continue
		}
		write := mpi.WriteAt[byte]
		if all {
			write = mpi.WriteAtAll
		}
		got, err := write(ctx, f, buf, int64(at))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	return want
}

// read has each rank read a stretch that may lie beyond the end.
func read[T mpi.Number](t *testing.T, ctx context.Context, f *mpi.File, random *rand.Rand, want []byte, most int, all bool) {
	c := mpi.World()
	size := mpi.TypeOf[T]().Size()
	for r := range c.Size() {
		n, at := random.IntN(most)/size, random.IntN(most)
		if r != c.Rank() {
			continue
		}
		dst := make([]T, n)
		call := mpi.ReadAt[T]
		if all {
			call = mpi.ReadAtAll
		}
		got, err := call(ctx, f, dst, int64(at))

		file, e := os.Open(f.Name())
		require.NoError(t, e)
		buf := make([]byte, n*size)
		k, e := file.ReadAt(buf, int64(at))
		require.NoError(t, file.Close())
		require.Equal(t, k/size, got)
		require.Equal(t, min(n*size, max(0, len(want)-at)), k)
		if e == nil {
			require.NoError(t, err)
		} else {
			require.Equal(t, io.EOF, e)
			require.ErrorIs(t, err, io.EOF)
			require.ErrorIs(t, err, mpi.ErrEOF)
		}
		require.True(t, slices.Equal(buf[:got*size], want[min(at, len(want)):min(at+got*size, len(want))]), "package os")
		require.True(t, slices.Equal(buf[:got*size], mpi.BytesOf(dst[:got])), "%d elements of %d from byte %d of %d, collectively: %v", n, size, at, len(want), all)
	}
}
