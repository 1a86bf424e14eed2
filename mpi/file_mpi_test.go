//go:build mpi && cgo

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// shared is a folder that all ranks see, for the test: of rank 0, which all are told.
func shared(t *testing.T) string {
	t.Helper()
	c := mpi.World()
	dir := ""
	if c.Rank() == 0 {
		dir = os.Getenv("GOCCL_MPI_TEST_DIR")
		var err error
		dir, err = os.MkdirTemp(dir, "goccl-file-")
		require.NoError(t, err)
	}
	all, err := c.AllGather(context.Background(), []byte(dir))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, mpi.Barrier(context.Background(), c))
		if c.Rank() == 0 {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	return string(all[0])
}

// TestFile has a file written, read, cut and lengthened at random by all ranks, and compares what each reads, and how much,
// with package os and with what the file must hold. Calls are of one piece or of many.
func TestFile(t *testing.T) {
	seed := uint64(41)
	if more, err := strconv.ParseUint(os.Getenv("GOCCL_MPI_TEST_SEED"), 10, 64); err == nil {
		seed = more
	}
	for _, most := range []int{1 << 30, 100} {
		for _, way := range ways(t) {
			t.Run(fmt.Sprintf("%s, %d bytes at once", way.name, most), func(t *testing.T) {
				mpi.SetMost(t, most)
				within(t, func() {
					campaign(t, way.ctx, filepath.Join(shared(t), "file"), rand.New(rand.NewPCG(seed, uint64(most))))
				})
			})
		}
	}
}

// TestFileErrors has what goes wrong with a file, on all ranks or on one: all are told, and the file or the communicator
// can be used on.
func TestFileErrors(t *testing.T) {
	ctx, c := context.Background(), mpi.World()
	me, last := c.Rank(), c.Size()-1
	dir := shared(t)
	file := filepath.Join(dir, "file")
	opened := func(mode mpi.Mode) *mpi.File {
		f, err := mpi.OpenFile(ctx, c, file, mode)
		require.NoError(t, err)
		return f
	}
	closed := opened(mpi.ReadWrite | mpi.Create)
	require.NoError(t, closed.Close())
	reads, writes := opened(mpi.ReadOnly), opened(mpi.WriteOnly)
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if me == 0 {
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		require.NoError(t, os.Symlink(pipe, link))
	}
	require.NoError(t, mpi.Barrier(ctx, c))
	buf := []float32{1, 2}
	open := func(name string, mode mpi.Mode, hints ...mpi.Hint) func() error {
		return func() error {
			_, err := mpi.OpenFile(ctx, c, name, mode, hints...)
			return err
		}
	}
	call := func(f func(context.Context, *mpi.File, []float32, int64) (int, error), of *mpi.File, at int64) func() error {
		return func() error {
			n, err := f(ctx, of, buf, at)
			require.Zero(t, n)
			return err
		}
	}
	onLast := func(a, b mpi.Mode) mpi.Mode {
		if me == last {
			return a
		}
		return b
	}
	elsewhere := func(text string) string { // where the last rank alone is refused
		if me == last {
			return text
		}
		return fmt.Sprintf("refused on rank %d", last)
	}
	for _, tc := range []struct {
		name  string
		call  func() error
		class mpi.Class
		also  error
		want  string
	}{
		{"missing", open(filepath.Join(dir, "none"), mpi.ReadOnly), mpi.ErrNoSuchFile, fs.ErrNotExist, "mpi: OpenFile " + filepath.Join(dir, "none") + ": "},
		{"missing folder", open(filepath.Join(dir, "none", "file"), mpi.ReadWrite|mpi.Create), mpi.ErrNoSuchFile, fs.ErrNotExist, "(MPI_ERR_NO_SUCH_FILE)"},
		{"pipe", open(pipe, mpi.ReadOnly), mpi.ErrBadFile, nil, "mpi: OpenFile " + pipe + ": it is no file (p---------) (MPI_ERR_BAD_FILE)"},
		{"pipe to write", open(pipe, mpi.WriteOnly|mpi.Create), mpi.ErrBadFile, nil, "it is no file (p---------)"},
		{"link to a pipe", open(link, mpi.ReadWrite), mpi.ErrBadFile, nil, "it is no file (p---------)"},
		{"pipe, by ROMIO", open("ufs:"+pipe, mpi.ReadOnly), mpi.ErrBadFile, nil, "it is no file (p---------)"},
		{"folder", open(dir, mpi.ReadOnly), mpi.ErrBadFile, nil, "it is no file (d---------)"},
		{"exists", open(file, mpi.ReadWrite|mpi.Create|mpi.Excl), mpi.ErrFileExists, fs.ErrExist, "(MPI_ERR_FILE_EXISTS)"},
		{"no way", open(file, mpi.Create), mpi.ErrAmode, nil, "mpi: OpenFile " + file + ": a mode needs one of ReadOnly, WriteOnly and ReadWrite (MPI_ERR_AMODE)"},
		{"two ways", open(file, mpi.ReadOnly|mpi.ReadWrite), mpi.ErrAmode, nil, "a mode needs one of"},
		{"made to be read", open(file, mpi.ReadOnly|mpi.Create), mpi.ErrAmode, nil, "a mode of ReadOnly with Create or Excl"},
		{"no such mode", open(file, 1<<12), mpi.ErrAmode, nil, "a mode of 4096, which has bits without a meaning"},
		{"mode of one rank", open(file, onLast(1<<12, mpi.ReadOnly)), mpi.ErrAmode, nil, elsewhere("a mode of 4096")},
		{"names", func() error {
			return open(filepath.Join(dir, map[bool]string{true: "mine"}[me == last]+"made"), mpi.ReadWrite|mpi.Create)()
		}, mpi.ErrNotSame, nil, "the ranks give different names, modes or hints (MPI_ERR_NOT_SAME)"},
		{"modes", open(file, onLast(mpi.ReadOnly, mpi.ReadWrite)), mpi.ErrNotSame, nil, "the ranks give different names, modes or hints (MPI_ERR_NOT_SAME)"},
		{"no name", open("", mpi.ReadOnly), mpi.ErrBadFile, nil, "a name needs at least one byte, and no zero byte (MPI_ERR_BAD_FILE)"},
		{"zero byte", open("a\x00b", mpi.ReadOnly), mpi.ErrBadFile, nil, "a name needs at least one byte, and no zero byte"},
		{"hint", open(file, mpi.ReadOnly, mpi.Hint{Value: "1"}), mpi.ErrInfoKey, nil, `a hint needs a name, and neither name nor value has a zero byte: "", "1" (MPI_ERR_INFO_KEY)`},
		{"closed twice", closed.Close, mpi.ErrFile, fs.ErrClosed, "mpi: Close " + file + ": the file was closed (MPI_ERR_FILE)"},
		{"closed, size", func() error { _, err := closed.Size(); return err }, mpi.ErrFile, fs.ErrClosed, "mpi: Size " + file + ": the file was closed"},
		{"closed, set", func() error { return closed.SetSize(ctx, 1) }, mpi.ErrFile, fs.ErrClosed, "mpi: SetSize " + file + ": the file was closed"},
		{"closed, sync", func() error { return closed.Sync(ctx) }, mpi.ErrFile, fs.ErrClosed, "the file was closed"},
		{"closed, read", call(mpi.ReadAt, closed, 0), mpi.ErrFile, fs.ErrClosed, "mpi: ReadAt " + file + ": the file was closed"},
		{"closed, write", call(mpi.WriteAtAll, closed, 0), mpi.ErrFile, fs.ErrClosed, "mpi: WriteAtAll " + file + ": the file was closed"},
		{"written to be read", call(mpi.WriteAt, reads, 0), mpi.ErrReadOnly, fs.ErrPermission, "mpi: WriteAt " + file + ": the file was opened as ReadOnly (MPI_ERR_READ_ONLY)"},
		{"written to be read, all", call(mpi.WriteAtAll, reads, 0), mpi.ErrReadOnly, fs.ErrPermission, "the file was opened as ReadOnly"},
		{"cut to be read", func() error { return reads.SetSize(ctx, 1) }, mpi.ErrReadOnly, nil, "the file was opened as ReadOnly"},
		{"read to be written", call(mpi.ReadAt, writes, 0), mpi.ErrAccess, fs.ErrPermission, "the file was opened as WriteOnly (MPI_ERR_ACCESS)"},
		{"negative size", func() error { return writes.SetSize(ctx, -1) }, mpi.ErrArg, nil, "a size of -1"},
		{"sizes", func() error { return writes.SetSize(ctx, int64(onLast(1, 2))) }, mpi.ErrNotSame, nil, "the ranks give different sizes (MPI_ERR_NOT_SAME)"},
		{"offset", call(mpi.ReadAt, reads, -1), mpi.ErrArg, nil, "mpi: ReadAt " + file + ": an offset of -1 (MPI_ERR_ARG)"},
		{"offset of one rank", call(mpi.ReadAtAll, reads, int64(onLast(-1, 0))), mpi.ErrArg, nil, elsewhere("an offset of -1")},
		{"end", call(mpi.ReadAt, reads, 7), mpi.ErrEOF, io.EOF, "mpi: ReadAt " + file + ": the file ends after 0 of 2 elements from byte 7 on"},
		{"end, all", call(mpi.ReadAtAll, reads, 7), mpi.ErrEOF, io.EOF, "mpi: ReadAtAll " + file + ": the file ends after 0 of 2 elements from byte 7 on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			within(t, func() {
				if tc.class == mpi.ErrNotSame && last == 0 {
					return // one rank differs from nobody
				}
				err := tc.call()
				require.ErrorIs(t, err, tc.class)
				require.ErrorContains(t, err, tc.want)
				if tc.also != nil {
					require.ErrorIs(t, err, tc.also)
				}
				var e *mpi.Error
				require.True(t, errors.As(err, &e))
				require.NotEqual(t, "no text", e.Text)
			})
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, "*made"))
	require.NoError(t, err)
	require.Empty(t, left, "none of two names was opened")
	require.ErrorIs(t, mpi.Finalize(), mpi.ErrState)
	require.EqualError(t, mpi.Finalize(), "mpi: Finalize: 2 files are open: close them first")
	require.NoError(t, reads.Close())
	require.NoError(t, writes.Close())
	_, err = os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, opened(mpi.ReadWrite|mpi.DeleteOnClose).Close())
	require.NoError(t, mpi.Barrier(ctx, c))
	_, err = os.Stat(file)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestFileContexts has one rank with a deadline in each collective call on a file, and calls whose context has ended.
func TestFileContexts(t *testing.T) {
	c := mpi.World()
	name := filepath.Join(shared(t), "file")
	for late := range c.Size() {
		ctx := deadlineOf(t, late)
		within(t, func() {
			f, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create)
			require.NoError(t, err)
			require.NoError(t, f.SetSize(ctx, 0))
			at := int64(8 * c.Rank())
			_, err = mpi.WriteAtAll(ctx, f, []int64{int64(c.Rank())}, at)
			require.NoError(t, err)
			require.NoError(t, f.Sync(ctx))
			buf := []int64{-1}
			_, err = mpi.ReadAtAll(ctx, f, buf, at)
			require.NoError(t, err)
			require.Equal(t, int64(c.Rank()), buf[0])

			ended, cancel := context.WithCancel(ctx)
			cancel()
			n, err := mpi.ReadAt(ended, f, buf, at)
			require.Zero(t, n)
			require.EqualError(t, err, "mpi: ReadAt "+name+": not begun, or not gone on with: context canceled")
			require.EqualError(t, f.Sync(ended), "mpi: Sync "+name+": not begun: context canceled")
			_, err = mpi.OpenFile(ended, c, name, mpi.ReadOnly)
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, f.Close())
		})
	}
}

// TestSizeUnknown has one rank fail to learn the size in a collective read, at once or after its end of file: it makes the
// calls that the others are in, and all have its error.
func TestSizeUnknown(t *testing.T) {
	ctx, c := context.Background(), mpi.World()
	mpi.SetMost(t, 8)
	name := filepath.Join(shared(t), "file")
	for asked := range 2 {
		within(t, func() {
			f, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create)
			require.NoError(t, err)
			if c.Rank() == 0 {
				mpi.FailSize(f, asked)
			}
			for range 2 { // and the file goes on
				n, err := mpi.ReadAtAll(ctx, f, make([]int64, 3), 0)
				require.Zero(t, n)
				require.ErrorIs(t, err, mpi.ErrIO)
			}
			mpi.FailSize(f, 0)
			_, err = mpi.ReadAt(ctx, f, make([]int64, 3), 0)
			require.ErrorIs(t, err, mpi.ErrIO)
			require.NoError(t, f.Sync(ctx))
			require.NoError(t, f.Close())
		})
	}
}

// collectivesOnFiles are the collective calls on an open file, by name.
var collectivesOnFiles = map[string]func(ctx context.Context, f *mpi.File) error{
	"SetSize": func(ctx context.Context, f *mpi.File) error { return f.SetSize(ctx, 8) },
	"Sync":    func(ctx context.Context, f *mpi.File) error { return f.Sync(ctx) },
	"ReadAtAll": func(ctx context.Context, f *mpi.File) error {
		_, err := mpi.ReadAtAll(ctx, f, make([]byte, 9), 0)
		return err
	},
	"WriteAtAll": func(ctx context.Context, f *mpi.File) error {
		_, err := mpi.WriteAtAll(ctx, f, make([]byte, 9), 0)
		return err
	},
	"Close": func(_ context.Context, f *mpi.File) error { return f.Close() },
}

// TestFileNotSame has the last rank make another collective call on a file than the others, also one that is refused by itself:
// all ranks are told both names, none of the calls is made, and the file goes on.
func TestFileNotSame(t *testing.T) {
	c := mpi.World()
	last := c.Size() - 1
	if last == 0 {
		t.Skip("one rank makes the calls that all make")
	}
	text := []byte("these are the bytes")
	calls := maps.Clone(collectivesOnFiles)
	delete(calls, "Close") // which insists
	calls["SetSize of -1"] = func(ctx context.Context, f *mpi.File) error { return f.SetSize(ctx, -1) }
	names := slices.Sorted(maps.Keys(calls))
	for _, way := range ways(t) {
		within(t, func() {
			ctx := way.ctx
			f, err := mpi.OpenFile(ctx, c, filepath.Join(shared(t), "file"), mpi.ReadWrite|mpi.Create)
			require.NoError(t, err)
			_, err = mpi.WriteAtAll(ctx, f, text, 0)
			require.NoError(t, err)
			require.NoError(t, f.Sync(ctx))
			for _, most := range names {
				for _, one := range names {
					a, _, _ := strings.Cut(most, " ")
					b, _, _ := strings.Cut(one, " ")
					if a == b {
						continue
					}
					mine, op := most, a
					if c.Rank() == last {
						mine, op = one, b
					}
					require.EqualError(t, calls[mine](ctx, f), fmt.Sprintf(
						"mpi: %s %s: rank 0 is in %s, rank %d in %s: the ranks make the same collective calls on a file, in the same order (MPI_ERR_NOT_SAME)",
						op, f.Name(), a, last, b), "%s, %s", most, one)
				}
			}
			got := make([]byte, len(text)+1)
			n, err := mpi.ReadAtAll(ctx, f, got, 0)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, string(text), string(got[:n]))
			if c.Rank() != last {
				require.EqualError(t, f.Sync(ctx), fmt.Sprintf(
					"mpi: Sync %s: rank 0 is in Sync, rank %d in Close: the ranks make the same collective calls on a file, in the same order (MPI_ERR_NOT_SAME)", f.Name(), last))
			}
			require.NoError(t, f.Close())
			require.ErrorIs(t, f.Close(), fs.ErrClosed)
		})
	}
}

// TestFileLeft has rank 0 give up each collective call on a file, or the opening, before the others come: they do not hang, all
// learn that the file is lost, and MPI can be ended.
func TestFileLeft(t *testing.T) {
	ctx := context.Background()
	if mpi.World().Size() == 1 {
		t.Skip("one rank waits for nobody")
	}
	name := filepath.Join(shared(t), "file")
	for _, op := range []string{"SetSize", "Sync", "ReadAtAll", "WriteAtAll", "OpenFile"} {
		t.Run(op, func(t *testing.T) {
			mpi.SetMost(t, 4)
			c, err := mpi.World().Dup()
			require.NoError(t, err)
			within(t, func() {
				var f *mpi.File
				if op != "OpenFile" {
					f, err = mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create)
					require.NoError(t, err)
				}
				call := func(ctx context.Context) error {
					if op != "OpenFile" {
						return collectivesOnFiles[op](ctx, f)
					}
					_, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create)
					return err
				}
				if c.Rank() == 0 {
					short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
					require.ErrorIs(t, call(short), context.DeadlineExceeded)
					require.NotZero(t, mpi.Abandoned())
					require.ErrorIs(t, mpi.Finalize(), mpi.ErrAbandoned)
				}
				require.NoError(t, mpi.Barrier(ctx, mpi.World())) // rank 0 has left
				if c.Rank() > 0 {
					require.ErrorIs(t, call(ctx), mpi.ErrAbandoned)
				}
				if f != nil {
					require.ErrorIs(t, f.Sync(ctx), mpi.ErrAbandoned)
					require.ErrorIs(t, f.Close(), mpi.ErrAbandoned)
				}
				for mpi.Abandoned() > 0 {
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// TestFileLeftAlone has rank 0 give up a call on a file to which the others do not come: they make another one, or one that is
// refused. Their next call tells them that the file is lost.
func TestFileLeftAlone(t *testing.T) {
	ctx, c := context.Background(), mpi.World()
	if c.Size() == 1 {
		t.Skip("one rank waits for nobody")
	}
	name := filepath.Join(shared(t), "file")
	for _, tc := range []struct {
		name string
		call func(f *mpi.File) error
		want mpi.Class
	}{
		{"another call", func(f *mpi.File) error { _, err := mpi.ReadAtAll(ctx, f, make([]byte, 9), 0); return err }, mpi.ErrNotSame},
		{"refused", func(f *mpi.File) error { return f.SetSize(ctx, -1) }, mpi.ErrArg},
	} {
		t.Run(tc.name, func(t *testing.T) {
			within(t, func() {
				f, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create)
				require.NoError(t, err)
				if c.Rank() == 0 {
					short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
					require.ErrorIs(t, f.SetSize(short, 8), context.DeadlineExceeded)
				}
				require.NoError(t, mpi.Barrier(ctx, c)) // rank 0 has left
				if c.Rank() > 0 {
					require.ErrorIs(t, tc.call(f), tc.want)
				}
				require.ErrorIs(t, f.Sync(ctx), mpi.ErrAbandoned)
				require.ErrorIs(t, f.Close(), mpi.ErrAbandoned)
				for mpi.Abandoned() > 0 {
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// TestHints opens a file with hints, also one that no library knows. test/mpi looks at what the library was given.
func TestHints(t *testing.T) {
	f, err := mpi.OpenFile(context.Background(), mpi.World(), filepath.Join(shared(t), "file"), mpi.WriteOnly|mpi.Create,
		mpi.StripingFactor(4), mpi.StripingUnit(64<<10), mpi.CollectiveNodes(2), mpi.Hint{Name: "of_nobody", Value: "a value"})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
