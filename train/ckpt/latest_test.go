package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A checkpoint whose parts are not all there in full is no whole one: Latest passes it over, and says so on all ranks, and Keep
// does not count it, so the last one that can be loaded stays.
func TestDamagedIsPassedOver(t *testing.T) {
	part := func(dir string) string { return filepath.Join(dir, partName(1, 2)) }
	for name, tc := range map[string]struct {
		damage func(dir string) error
		says   string
	}{
		"a part is missing":       {func(d string) error { return os.Remove(part(d)) }, "is missing"},
		"a part is short":         {func(d string) error { return os.Truncate(part(d), 100) }, "is truncated: it has 100 bytes of"},
		"a part is empty":         {func(d string) error { return os.Truncate(part(d), 0) }, "is truncated: it has 0 bytes of"},
		"a part is long":          {func(d string) error { return os.Truncate(part(d), 1<<20) }, "has 1048576 bytes, but should have"},
		"a part is a directory":   {func(d string) error { os.Remove(part(d)); return os.Mkdir(part(d), 0o777) }, "is not a regular file"},
		"the index is missing":    {func(d string) error { return os.Remove(filepath.Join(d, indexName)) }, "no such file"},
		"the index is short":      {func(d string) error { return os.Truncate(filepath.Join(d, indexName), 100) }, "is damaged"},
		"the index is empty":      {func(d string) error { return os.Truncate(filepath.Join(d, indexName), 0) }, "is damaged"},
		"the index cannot be one": {func(d string) error { return os.WriteFile(filepath.Join(d, indexName), []byte("[]"), 0o666) }, "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				for s := 1; s <= 3; s++ {
					require.NoError(t, Save(ctx, c, Step(dir, s), s, vector(c.Rank(), 2, float32(s))))
				}
				if c.Rank() == 0 {
					require.NoError(t, tc.damage(Step(dir, 3)))
				}
				require.NoError(t, ccl.Barrier(ctx, c))
				latest, passed, err := Latest(ctx, c, dir)
				require.NoError(t, err)
				require.Equal(t, Step(dir, 2), latest)
				require.Len(t, passed, 1)
				require.ErrorContains(t, passed[0], Step(dir, 3)+" is not whole: ")
				require.ErrorContains(t, passed[0], tc.says)
				require.NoError(t, Keep(ctx, c, dir, 1))
				got := vector(c.Rank(), 2, 0)
				require.NoError(t, Load(ctx, c, Step(dir, 2), nil, got))
				require.Equal(t, vector(c.Rank(), 2, 2), got)
				if c.Rank() == 0 {
					require.Equal(t, []string{"step-00000002", "step-00000003"}, names(t, dir), "what is damaged stays")
				}
				require.NoError(t, ccl.Barrier(ctx, c))
				require.NoError(t, Keep(ctx, c, dir, 1), "again: the last whole one stays")
				require.NoError(t, Load(ctx, c, Step(dir, 2), nil, got))

				// The training comes to step 3 again: what is damaged gives way, and is kept.
				require.NoError(t, Save(ctx, c, Step(dir, 3), 3, vector(c.Rank(), 2, 3)))
				latest, passed, err = Latest(ctx, c, dir)
				require.NoError(t, err)
				require.Empty(t, passed)
				require.Equal(t, Step(dir, 3), latest)
				require.NoError(t, Load(ctx, c, latest, nil, got))
				require.Equal(t, vector(c.Rank(), 2, 3), got)
				if c.Rank() == 0 {
					left := names(t, dir)
					require.Len(t, left, 3)
					require.Regexp(t, `^step-00000003\.damaged-[0-9a-f]{16}$`, left[2])
				}
			})
		})
	}
}

// What is not a checkpoint, or has more in it than one, gives way to none.
func TestNothingElseGivesWay(t *testing.T) {
	c := alone(t)
	for name, fill := range map[string]func(dir string) error{
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o666) },
		"something of a user": func(dir string) error {
			os.Mkdir(dir, 0o777)
			return os.WriteFile(filepath.Join(dir, "notes"), nil, 0o666)
		},
		"a whole one": func(dir string) error { return Save(t.Context(), c, dir, 1, vector(0, 1, 1)) },
		"more than one": func(dir string) error {
			err := Save(t.Context(), c, dir, 1, vector(0, 1, 1))
			return errors.Join(err, os.Remove(filepath.Join(dir, indexName)), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o666))
		},
	} {
		dir := t.TempDir()
		require.NoError(t, fill(Step(dir, 1)))
		require.ErrorIs(t, Save(t.Context(), c, Step(dir, 1), 1, vector(0, 1, 2)), os.ErrExist, name)
		require.Equal(t, []string{"step-00000001"}, names(t, dir))
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mine"), 0o777))
	require.ErrorIs(t, Save(t.Context(), c, filepath.Join(dir, "mine"), 1, vector(0, 1, 2)), os.ErrExist, "Step has not named it")
}

// A training goes back from step 100 to 50. What it saves from there is the latest, and is kept; after Forget it may save 100
// again.
func TestGoingBack(t *testing.T) {
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprint("Forget ", forget), func(t *testing.T) {
			dir := t.TempDir()
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				latest := func() string {
					name, passed, err := Latest(ctx, c, dir)
					require.NoError(t, err)
					require.Empty(t, passed)
					return name
				}
				there := func(want ...string) {
					if c.Rank() == 0 {
						require.Equal(t, want, names(t, dir))
					}
					require.NoError(t, ccl.Barrier(ctx, c))
				}
				step := func(s int) {
					require.NoError(t, Save(ctx, c, Step(dir, s), s, vector(c.Rank(), 2, float32(s))))
					require.Equal(t, Step(dir, s), latest())
				}
				step(50)
				step(100)
				require.NoError(t, Load(ctx, c, Step(dir, 50), nil, vector(c.Rank(), 2, 0)))
				if forget {
					require.NoError(t, Forget(ctx, c, dir, 50))
					there("step-00000050")
					require.Equal(t, Step(dir, 50), latest())
					step(60)
					step(100)
					require.NoError(t, Keep(ctx, c, dir, 2))
					there("step-00000060", "step-00000100")
					return
				}
				// A Saver at work on the next step loses nothing to Keep.
				s, err := NewSaver(ctx, c)
				require.NoError(t, err)
				require.NoError(t, s.Save(ctx, Step(dir, 60), 60, vector(c.Rank(), 2, 60)))
				require.NoError(t, Keep(ctx, c, dir, 2))
				require.NoError(t, s.Close(ctx))
				require.Equal(t, Step(dir, 60), latest())
				require.NoError(t, Keep(ctx, c, dir, 1))
				there("step-00000060")
				step(70)
				step(65)
				require.NoError(t, Keep(ctx, c, dir, 2))
				there("step-00000065", "step-00000070")
			})
		})
	}
}

// A training that has gone back without Forget, and then forgets that: the step that it goes back to is the latest, though what
// was saved after it has a lower number.
func TestForgetAnotherBranch(t *testing.T) {
	dir, c := t.TempDir(), alone(t)
	for _, s := range []int{50, 100, 60} {
		require.NoError(t, Save(t.Context(), c, Step(dir, s), s, vector(0, 1, float32(s))))
	}
	for _, name := range []string{"step-00000050.tmp-2-", "step-00000070.tmp-4-"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name+ending), 0o777))
	}
	require.NoError(t, Forget(t.Context(), c, dir, 100))
	require.Equal(t, []string{"step-00000050", "step-00000050.tmp-2-" + ending, "step-00000100"}, names(t, dir))
	latest, passed, err := Latest(t.Context(), c, dir)
	require.NoError(t, err)
	require.Empty(t, passed)
	require.Equal(t, Step(dir, 100), latest)
}

// Forget removes nothing where there is nothing to go back to.
func TestForgetRefused(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		for s := 1; s <= 2; s++ {
			require.NoError(t, Save(ctx, c, Step(dir, s), s, vector(c.Rank(), 2, 1)))
		}
		if c.Rank() == 0 {
			require.NoError(t, os.Truncate(filepath.Join(Step(dir, 1), partName(0, 2)), 9))
		}
		require.NoError(t, ccl.Barrier(ctx, c))
		require.ErrorContains(t, Forget(ctx, c, dir, 1), "there is no going back to it: ")
		require.ErrorContains(t, Forget(ctx, c, dir, 0), "there is no going back to it: ")
		require.ErrorContains(t, Forget(ctx, c, dir, c.Rank()), "rank 1 has step 1")
		if c.Rank() == 0 {
			require.Equal(t, []string{"step-00000001", "step-00000002"}, names(t, dir))
		}
	})
}

// What Step has not named is no step.
func TestStepOf(t *testing.T) {
	for name, want := range map[string]int{"step-00000007": 7, "step-123456789": 123456789, "step-7": -1, "step-+0000007": -1, "step--0000007": -1,
		"step-00000007.tmp-1-" + ending: -1, "step-": -1, "step": -1, "step-000000007": -1, "step-99999999999999999999": -1} {
		n, ok := stepOf(name)
		require.Equal(t, want >= 0, ok, name)
		if ok {
			require.Equal(t, want, n)
		}
	}
}
