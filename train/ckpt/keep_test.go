package ckpt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

func names(t testing.TB, dir string) (list []string) {
	es, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range es {
		list = append(list, e.Name())
	}
	return list
}

// flip changes a bit of a file, at a byte of it; a negative one counts from its end.
func flip(name string, at int) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b[(at+len(b))%len(b)] ^= 1
	return os.WriteFile(name, b, 0o666)
}

// nth is a disk whose n-th write, sync or rename asks f.
func nth(n int, f func(op, path string) error) *disk {
	seen := 0
	return &disk{fault: func(op, path string) error {
		if seen++; seen == n {
			return f(op, path)
		}
		return nil
	}}
}

// ending is as random makes it.
const ending = "0123456789abcdef"

// The first checkpoint of a run is under way in the background, and Keep comes before its directory.
func TestKeepBeforeTheFirstCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "1")
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, Keep(t.Context(), c, dir, 3))
		_, _, err := Latest(t.Context(), c, dir)
		require.ErrorIs(t, err, os.ErrNotExist, "a Keep makes nothing")
		s, err := NewSaver(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, s.Save(t.Context(), Step(dir, 1), 1, held(c.Rank(), 3, true)))
		require.NoError(t, Keep(t.Context(), c, dir, 3))
		require.NoError(t, s.Close(t.Context()))
		_, _, err = Latest(t.Context(), c, dir)
		require.NoError(t, err)
	})
	require.Equal(t, []string{"step-00000001"}, names(t, dir))
	file := filepath.Join(dir, "step-00000001", indexName)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		require.ErrorContains(t, Keep(t.Context(), c, file, 3), "Keep 3 in "+file, "what is no directory is an error still")
	})
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, Keep(t.Context(), c, dir, 1), "there is none yet")
		for i := range 4 {
			require.NoError(t, Save(t.Context(), c, Step(dir, i), i, held(c.Rank(), 2, true)))
		}
		if c.Rank() == 0 {
			for _, name := range []string{"step-00000001.tmp-3-" + ending, "step-00000001.tmp-4-" + ending, "mine", "step-00000002.gone-" + ending,
				"step-00000003.tmp-1-" + ending + ".gone-" + ending, "step-00000001.gone-wrong", "step-00000001.tmp-1-a", "step-00000001.tmp-old"} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o777))
			}
			require.NoError(t, os.WriteFile(filepath.Join(Step(dir, 0), indexName), []byte("spoilt"), 0o666))
		}
		ccltest.Barrier(t, c)
		require.NoError(t, Keep(t.Context(), c, dir, 2))
		if c.Rank() == 0 {
			// What was spoilt stays, as does what a Save that began later may be writing, and what a user has named.
			require.Equal(t, []string{"mine", "step-00000000", "step-00000001.gone-wrong", "step-00000001.tmp-1-a",
				"step-00000001.tmp-4-" + ending, "step-00000001.tmp-old", "step-00000002", "step-00000003"}, names(t, dir))
		}
		require.ErrorContains(t, Keep(t.Context(), c, dir, 0), "at least one checkpoint must be kept")
		require.ErrorContains(t, Keep(t.Context(), c, dir, 1+c.Rank()), "rank 1")
	})
	d := &disk{fault: func(string, string) error { return errors.New("read-only") }}
	require.ErrorContains(t, keep(d, dir, 1), "read-only")
	from, _, err := findLatest(&disk{}, dir)
	require.NoError(t, err)
	require.Equal(t, Step(dir, 3), from)
}

// unfinished are the entries beside name that a writer or a remover of it has left.
func unfinished(t testing.TB, name string) (list []string) {
	for _, e := range names(t, filepath.Dir(name)) {
		if x := parseName(e); x.of == filepath.Base(name) && (x.tmp || x.gone) {
			list = append(list, e)
		}
	}
	return list
}

// An error in the middle of a Keep or a Forget leaves each checkpoint whole under its name, or without its name, and the
// one that is to stay.
func TestKeepFaults(t *testing.T) {
	c := alone(t)
	for name, f := range map[string]func(d *disk, dir string) error{
		"Keep":   func(d *disk, dir string) error { return keep(d, dir, 2) },
		"Forget": func(d *disk, dir string) error { return forget(d, dir, 2) },
	} {
		for at := 1; ; at++ {
			dir, hit := t.TempDir(), false
			for s := 1; s <= 4; s++ {
				require.NoError(t, Save(t.Context(), c, Step(dir, s), s, vector(0, 1, float32(s))))
			}
			err := f(nth(at, func(string, string) error { hit = true; return errors.New("the end") }), dir)
			if !hit {
				require.NoError(t, err)
				require.Len(t, names(t, dir), 2, name)
				require.Greater(t, at, 2)
				break
			}
			require.ErrorContains(t, err, "the end")
			steps, err := listSteps(&disk{}, dir)
			require.NoError(t, err)
			for _, s := range steps {
				require.EqualValues(t, s.number, valueOf(t, c, filepath.Join(dir, s.name), 1))
			}
			if name == "Forget" {
				require.EqualValues(t, 2, valueOf(t, c, Step(dir, 2), 1))
			}
			require.NoError(t, f(&disk{}, dir), "again")
			require.Len(t, names(t, dir), 2)
		}
	}
}
