package slots

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/ckpt/store"
)

// files are the words of an index.
func files(o store.Object) (map[string]bool, error) {
	b := make([]byte, o.Size())
	if _, err := o.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names := map[string]bool{}
	for _, name := range strings.Fields(string(b)) {
		names[name] = true
	}
	return names, nil
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// Of attempts one wins each slot, in whatever order they go; what has lost is deleted, and never what has won.
func TestSlots(t *testing.T) {
	dir := store.Dir(t.TempDir())
	k := func() *Rack { return New(t.Context(), dir, files) }
	attempt := func(name string) (mark, part string) {
		mark, _, err := k().Take(name, true, func() bool { return false })
		require.NoError(t, err)
		part = PartName("part-00001-of-00001.safetensors", mark)
		require.NoError(t, k().Put(name+"/"+part, 1, text("x")))
		return mark, part
	}
	publish := func(name, mark, part string) error { return k().Publish(name, mark, int64(len(part)), text(part)) }
	has := func(object string) bool {
		o, err := k().Open(object)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			return false
		}
		require.NoError(t, o.Close())
		return true
	}
	const one, two = "step-00000001", "step-00000002"
	a, partA := attempt(one)
	b, partB := attempt(one)
	require.Regexp(t, `^0-1-[0-9a-f]{16}$`, a)
	require.Regexp(t, `^0-2-[0-9a-f]{16}$`, b)
	require.NoError(t, publish(one, a, partA))
	require.True(t, has(one+"/"+partA))
	require.False(t, has(one+"/"+partB))
	require.ErrorIs(t, publish(one, b, partB), ErrTaken)
	_, _, err := k().Take(one, true, func() bool { return false })
	require.ErrorIs(t, err, ErrTaken)
	require.NoError(t, publish(one, a, partA), "what has won has won when it asks again")

	c, partC := attempt(two)
	require.NoError(t, k().Clear(".", nil, func(name string, sequence int64) bool { return sequence < 2 }))
	require.True(t, has(two+"/"+partC), "which may be the next")
	require.NoError(t, k().Clear(".", []string{one}, func(string, int64) bool { return true }))
	require.False(t, has(two+"/"+partC))
	require.False(t, has(one+"/"+partA))
	require.ErrorIs(t, publish(two, c, partC), ErrRemoved)
	require.ErrorIs(t, publish(one, a, partA), ErrRemoved)
	live, err := k().Live(".")
	require.NoError(t, err)
	require.Empty(t, live)
	d, partD := attempt(one)
	require.Regexp(t, `^1-1-[0-9a-f]{16}$`, d)
	require.NoError(t, publish(one, d, partD))
	o, err := k().Index(one)
	require.NoError(t, err)
	names, err := files(o)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{partD: true}, names)
	require.NoError(t, o.Close())
}

// flaky is a Store whose Puts ask, and whose Opens fail while down.
type flaky struct {
	store.Dir
	put  func(n int, do func() error) error
	puts int
	down bool
}

func (f *flaky) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	f.puts++
	return f.put(f.puts, func() error { return f.Dir.Put(ctx, name, size, fresh, write) })
}

func (f *flaky) Open(ctx context.Context, name string) (store.Object, error) {
	if f.down {
		return nil, errDown
	}
	return f.Dir.Open(ctx, name)
}

var errDown = errors.New("the storage is down")

// What becomes of an index whose Put was tried again after an answer that was lost: the attempt's own, it has won; the
// empty one that it puts after a failure is not another's; and what cannot be found out is not said to be another's.
func TestLostAnswers(t *testing.T) {
	again := func(do func() error) error { return errors.Join(do(), do()) }
	for _, tc := range []struct {
		name string
		put  func(n int, do func() error) error
		down bool
		want error
		not  error
		kept bool
	}{
		{"its own", func(_ int, do func() error) error { return again(do) }, false, nil, nil, true},
		{"an empty index of its own", func(n int, do func() error) error {
			if n == 1 {
				return errDown
			}
			return again(do)
		}, false, errDown, fs.ErrExist, false},
		{"what cannot be read", func(_ int, do func() error) error { return again(do) }, true, errDown, fs.ErrExist, true},
	} {
		dir := store.Dir(t.TempDir())
		mark, _, err := New(t.Context(), dir, files).Take("x", false, nil)
		require.NoError(t, err)
		part := PartName("part-00001-of-00001.safetensors", mark)
		require.NoError(t, New(t.Context(), dir, files).Put("x/"+part, 1, text("x")))
		k := New(t.Context(), &flaky{Dir: dir, put: tc.put, down: tc.down}, files)
		err = k.Publish("x", mark, int64(len(part)), text(part))
		if tc.want == nil {
			require.NoError(t, err, tc.name)
		} else {
			require.ErrorIs(t, err, tc.want, tc.name)
			require.NotErrorIs(t, err, tc.not, tc.name)
		}
		k.Discard("x", mark) // as a Save does that fails, here or later
		_, err = dir.Open(t.Context(), "x/"+part)
		require.Equal(t, tc.kept, err == nil, tc.name)
	}
}

// Names that a Save would not give are no reason to give others that nothing reads.
func TestTooMany(t *testing.T) {
	dir := store.Dir(t.TempDir())
	const part = "step-00000001/part-00001-of-00001.0-999999999999999999-0123456789abcdef.safetensors"
	require.NoError(t, dir.Put(t.Context(), part, 1, false, text("x")))
	_, _, err := New(t.Context(), dir, files).Take("step-00000002", true, nil)
	require.ErrorContains(t, err, "no Save has put there")
}

// An index of which a crash has left as many bytes as an empty one has is damaged: the checkpoint was not removed, and
// nothing of it is deleted. One that has no part is taken for removed: nothing is left to be lost.
func TestCutIndex(t *testing.T) {
	dir := store.Dir(t.TempDir())
	k := func() *Rack {
		return New(t.Context(), dir, func(o store.Object) (map[string]bool, error) {
			if Empty(o.Size()) {
				return nil, errors.New("no index")
			}
			return files(o)
		})
	}
	const name, next = "step-00000001", "step-00000002"
	mark, _, err := k().Take(name, true, nil)
	require.NoError(t, err)
	part := PartName("part-00001-of-00001.safetensors", mark)
	require.NoError(t, k().Put(name+"/"+part, 1, text("x")))
	require.NoError(t, k().Publish(name, mark, int64(len(part)), text(part)))
	require.NoError(t, dir.Put(t.Context(), name+"/index.json", int64(len(empty)), false, text(part[:len(empty)])))

	live, err := k().Live(".")
	require.NoError(t, err)
	require.Equal(t, []string{name}, live)
	_, _, err = k().Take(name, true, func() bool { return false })
	require.ErrorIs(t, err, ErrTaken)
	require.NoError(t, k().Clear(".", nil, func(string, int64) bool { return true }))
	o, err := k().Open(name + "/" + part)
	require.NoError(t, err, "the part stays")
	require.NoError(t, o.Close())

	require.NoError(t, k().Clear(".", []string{name}, func(string, int64) bool { return true }), "it may go")
	require.True(t, k().Lacks(name+"/"+part))
	require.NoError(t, dir.Put(t.Context(), next+"/index.json", int64(len(empty)), false, text("12345678")))
	live, err = k().Live(".")
	require.NoError(t, err)
	require.Empty(t, live)
}
