package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestDir(t *testing.T) {
	dir := t.TempDir()
	ctx, d := t.Context(), Dir(filepath.Join(dir, "not", "yet"))
	es, err := d.List(ctx, "")
	require.NoError(t, err)
	require.Empty(t, es)
	require.NoError(t, d.Delete(ctx, "a/b"))
	require.NoError(t, d.Put(ctx, "a/b", 3, true, text("one")))
	require.ErrorIs(t, d.Put(ctx, "a/b", 3, true, text("two")), fs.ErrExist)
	require.NoError(t, d.Put(ctx, "a/b", 5, false, text("three")))
	o, err := d.Open(ctx, "a/b")
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = o.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, "three", string(b))
	require.EqualValues(t, 5, o.Size())
	require.NoError(t, o.Close())
	require.ErrorContains(t, d.Put(ctx, "a/c", 4, false, text("three")), "5 bytes were written, and 4 announced")
	for _, name := range []string{"a", "a/b/c"} { // a directory, and what is below a file
		_, err = d.Open(ctx, name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		require.NoError(t, d.Delete(ctx, name))
	}
	bad := errors.New("a test's")
	require.ErrorIs(t, d.Put(ctx, "a/c", 4, false, func(io.Writer) error { return bad }), bad)
	for _, name := range []string{"", ".", "..", "/a", "a/../b", "a.put-0123456789abcdef"} {
		require.ErrorIs(t, d.Put(ctx, name, 0, false, text("")), fs.ErrInvalid, name)
	}
	_, err = d.List(ctx, "../")
	require.ErrorIs(t, err, fs.ErrInvalid)

	// What a Put has left that was killed is in no list, and goes when it may.
	left := d.file("a/x.put-0123456789abcdef")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	es, err = d.List(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, []Entry{{"a/b", 5}}, es)
	require.NoError(t, d.Sweep(ctx, "", func(name string) bool { return name != "a/x" }))
	require.FileExists(t, left)
	require.NoError(t, d.Sweep(ctx, "", func(name string) bool { return name == "a/x" }))
	require.NoFileExists(t, left)
	require.NoError(t, d.Delete(ctx, "a/b"))
	_, err = d.Open(ctx, "a/b")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
