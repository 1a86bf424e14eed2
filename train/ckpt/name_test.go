package ckpt

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
)

// vector is rank r's part of a vector of n ranks, of one value.
func vector(r, n int, value float32) []Tensor {
	const part = 1000
	return []Tensor{{Name: "x", Shape: []int{n * part}, Lo: r * part, Hi: (r + 1) * part, Data: slices.Repeat([]float32{value}, part)}}
}

// alone is a Comm of one rank.
func alone(t testing.TB) *ccl.Comm {
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// valueOf is the value of the vector in dir, which must be whole and of one Save.
func valueOf(t testing.TB, c *ccl.Comm, dir string, n int) float32 {
	t.Helper()
	var state float32
	got := vector(0, 1, 0)
	got[0].Shape, got[0].Hi, got[0].Data = []int{n * 1000}, n*1000, make([]float32, n*1000)
	require.NoError(t, Load(t.Context(), c, dir, &state, got))
	for _, v := range got[0].Data.([]float32) {
		require.Equal(t, state, v)
	}
	return state
}

// At each write, sync and rename of a Save another job saves to the same directory, from begin to end, or removes what it finds
// old there. A Save without an error is there, whole; a Save with one has left the other's whole.
func TestSecondWriter(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, c *ccl.Comm, dir string) error{
		"the same step": func(t *testing.T, c *ccl.Comm, dir string) error {
			return Save(t.Context(), c, Step(dir, 2), 9, vector(0, 1, 9))
		},
		"the next step": func(t *testing.T, c *ccl.Comm, dir string) error {
			return Save(t.Context(), c, Step(dir, 3), 9, vector(0, 1, 9))
		},
		"Keep": func(t *testing.T, c *ccl.Comm, dir string) error { return Keep(t.Context(), c, dir, 1) },
		"save and keep": func(t *testing.T, c *ccl.Comm, dir string) error {
			return errors.Join(Save(t.Context(), c, Step(dir, 3), 9, vector(0, 1, 9)), Keep(t.Context(), c, dir, 1))
		},
		"Forget": func(t *testing.T, c *ccl.Comm, dir string) error { return Forget(t.Context(), c, dir, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := alone(t), alone(t)
			for at := 1; ; at++ {
				dir := t.TempDir()
				require.NoError(t, Save(t.Context(), first, Step(dir, 1), 1, vector(0, 1, 1)))
				hit := false
				var other error
				d := nth(at, func(string, string) error {
					hit, other = true, between(t, second, dir)
					return nil
				})
				err := save(t.Context(), first, d, Step(dir, 2), 2, vector(0, 1, 2))
				if !hit {
					require.NoError(t, err)
					require.Greater(t, at, 5)
					return
				}
				latest, passed, failed := findLatest(&disk{}, dir)
				require.NoError(t, failed)
				require.Empty(t, passed)
				valueOf(t, first, latest, 1)
				_, missing := os.Stat(Step(dir, 2))
				switch name {
				case "the same step":
					require.True(t, (err == nil) != (other == nil), "one of two: %v, %v", err, other)
					want := float32(2)
					if other == nil {
						want = 9
						if !errors.Is(err, fs.ErrExist) { // it is there
							require.ErrorContains(t, err, "another job", "at %d", at)
						}
					} else {
						require.ErrorIs(t, other, fs.ErrExist)
					}
					require.Equal(t, want, valueOf(t, first, Step(dir, 2), 1))
				case "the next step", "Keep", "save and keep":
					require.NoError(t, errors.Join(err, other))
					if name == "save and keep" && missing != nil { // which was old by then
						break
					}
					require.EqualValues(t, 2, valueOf(t, first, Step(dir, 2), 1))
				case "Forget":
					require.NoError(t, other)
					if err == nil && missing == nil {
						require.EqualValues(t, 2, valueOf(t, first, Step(dir, 2), 1))
					} else if err != nil {
						require.ErrorContains(t, err, "another job")
						require.ErrorIs(t, missing, fs.ErrNotExist)
					}
				}
				require.NoError(t, Save(t.Context(), first, Step(dir, 4), 4, vector(0, 1, 4)))
				require.NoError(t, keep(&disk{}, dir, 9))
				for _, e := range names(t, dir) {
					require.False(t, parseName(e).tmp || parseName(e).gone, "%s is left", e)
				}
			}
		})
	}
}

// Between a writer's look at what is damaged and its rename of that another one has published the same step: it stays.
func TestPublishedInPlaceOfDamaged(t *testing.T) {
	dir, c := t.TempDir(), alone(t)
	require.NoError(t, Save(t.Context(), c, Step(dir, 1), 1, vector(0, 1, 1)))
	require.NoError(t, os.Remove(filepath.Join(Step(dir, 1), partName(0, 1))))
	other := alone(t)
	var once sync.Once
	d := &disk{fault: func(op, path string) error {
		once.Do(func() { require.NoError(t, Save(t.Context(), other, Step(dir, 1), 9, vector(0, 1, 9))) })
		return nil
	}}
	require.ErrorIs(t, save(t.Context(), c, d, Step(dir, 1), 1, vector(0, 1, 1)), fs.ErrExist)
	require.EqualValues(t, 9, valueOf(t, c, Step(dir, 1), 1))
	left := names(t, dir)
	require.Len(t, left, 2)
	require.Regexp(t, `^step-00000001\.damaged-[0-9a-f]{16}$`, left[1])
	require.ErrorContains(t, whole(folder(filepath.Join(dir, left[1]))), "is missing", "only what was damaged has lost its name")
}

// A checkpoint of another version of this package is not damaged: a Save leaves it where it is.
func TestAnotherFormatIsNotDamaged(t *testing.T) {
	dir, c := t.TempDir(), alone(t)
	require.NoError(t, Save(t.Context(), c, Step(dir, 1), 1, vector(0, 1, 1)))
	name := filepath.Join(Step(dir, 1), indexName)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, bytes.Replace(text, []byte(format), []byte("goccl-ckpt/2"), 1), 0o666))
	require.ErrorIs(t, Save(t.Context(), c, Step(dir, 1), 1, vector(0, 1, 1)), fs.ErrExist)
	require.Equal(t, []string{"step-00000001"}, names(t, dir))
	require.ErrorContains(t, whole(folder(Step(dir, 1))), `has format "goccl-ckpt/2"; this version reads "goccl-ckpt/1"`)
}

// Two jobs, of two ranks each, save the same steps: one Save of each step succeeds, and what it has saved is there, unless Keep
// has removed it, whole.
func TestTwoJobs(t *testing.T) {
	for _, keep := range []int{0, 2} {
		const steps = 30
		dir := t.TempDir()
		var mu sync.Mutex
		saved, told := [steps]map[int]bool{}, [steps][]error{}
		var all sync.WaitGroup
		for job := 1; job <= 2; job++ {
			all.Go(func() {
				ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
					for step := range steps {
						err := Save(t.Context(), c, Step(dir, step), job, vector(c.Rank(), 2, float32(job)))
						if err != nil && !errors.Is(err, fs.ErrExist) {
							require.ErrorContains(t, err, "another job")
						}
						if c.Rank() == 0 && err != nil {
							mu.Lock()
							told[step] = append(told[step], err)
							mu.Unlock()
						}
						if c.Rank() == 0 && err == nil {
							mu.Lock()
							if saved[step] == nil {
								saved[step] = map[int]bool{}
							}
							saved[step][job] = true
							mu.Unlock()
						}
						if keep > 0 {
							require.NoError(t, Keep(t.Context(), c, dir, keep))
						}
					}
				})
			})
		}
		all.Wait()
		c := alone(t)
		for step, jobs := range saved {
			if keep == 0 {
				require.Len(t, jobs, 1, "step %d: %v", step, told[step])
			}
			for job := range jobs {
				_, err := os.Stat(Step(dir, step))
				if keep == 0 || err == nil && len(jobs) == 1 {
					require.EqualValues(t, job, valueOf(t, c, Step(dir, step), 2))
				} else if err == nil {
					valueOf(t, c, Step(dir, step), 2)
				}
			}
		}
		if keep == 0 {
			require.Len(t, names(t, dir), steps, "nothing else is left")
		} else {
			require.NoError(t, Keep(t.Context(), c, dir, keep))
			latest, passed, err := findLatest(&disk{}, dir)
			require.NoError(t, err)
			require.Empty(t, passed)
			valueOf(t, c, latest, 2)
		}
	}
}

// Every error of a call of several ranks is the same on all of them, by text and by kind.
func TestErrorsAreAlike(t *testing.T) {
	full := func(rank int) func(string, string) error {
		return func(op, path string) error {
			if op == "write" && filepath.Base(path) == partName(rank, 3) {
				return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
			}
			return nil
		}
	}
	damaged := func(dir string) error { return os.Remove(filepath.Join(Step(dir, 1), partName(2, 3))) }
	for name, tc := range map[string]struct {
		before func(dir string) error // on rank 0
		f      func(t testing.TB, c *ccl.Comm, dir string) error
		is     error // nil: of no kind
		not    error
	}{
		"Latest of no directory": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			_, _, err := Latest(t.Context(), c, filepath.Join(dir, "none"))
			return err
		}, fs.ErrNotExist, nil},
		"Latest of an empty one": {func(dir string) error { return os.RemoveAll(Step(dir, 1)) }, func(t testing.TB, c *ccl.Comm, dir string) error {
			_, _, err := Latest(t.Context(), c, dir)
			return err
		}, fs.ErrNotExist, nil},
		"Latest of a damaged one": {damaged, func(t testing.TB, c *ccl.Comm, dir string) error {
			_, _, err := Latest(t.Context(), c, dir)
			return err
		}, nil, fs.ErrNotExist},
		"Latest of a file": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			_, _, err := Latest(t.Context(), c, filepath.Join(Step(dir, 1), indexName))
			return err
		}, syscall.ENOTDIR, nil},
		"Save to what is there": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return Save(t.Context(), c, Step(dir, 1), nil, vector(c.Rank(), 3, 1))
		}, fs.ErrExist, nil},
		"Save below a file": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return Save(t.Context(), c, filepath.Join(Step(dir, 1), indexName, "x"), nil, vector(c.Rank(), 3, 1))
		}, syscall.ENOTDIR, nil},
		"a Saver's Save below a file": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			s, err := NewSaver(t.Context(), c)
			require.NoError(t, err)
			require.NoError(t, s.Save(t.Context(), filepath.Join(Step(dir, 1), indexName, "x"), nil, vector(c.Rank(), 3, 1)))
			return s.Close(t.Context())
		}, syscall.ENOTDIR, nil},
		"a full disk on rank 0": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return save(t.Context(), c, &disk{fault: full(0)}, Step(dir, 2), nil, vector(c.Rank(), 3, 1))
		}, syscall.ENOSPC, nil},
		"a full disk on rank 2": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return save(t.Context(), c, &disk{fault: full(2)}, Step(dir, 2), nil, vector(c.Rank(), 3, 1))
		}, syscall.ENOSPC, nil},
		"Load of nothing": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return Load(t.Context(), c, Step(dir, 2), nil, vector(c.Rank(), 3, 1))
		}, fs.ErrNotExist, nil},
		"Load of a damaged one": {damaged, func(t testing.TB, c *ccl.Comm, dir string) error {
			return Load(t.Context(), c, Step(dir, 1), nil, vector(c.Rank(), 3, 1))
		}, nil, fs.ErrNotExist},
		"Forget after nothing": {nil, func(t testing.TB, c *ccl.Comm, dir string) error {
			return Forget(t.Context(), c, dir, 7)
		}, fs.ErrNotExist, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				require.NoError(t, Save(t.Context(), c, Step(dir, 1), nil, vector(c.Rank(), 3, 1)))
				if tc.before != nil && c.Rank() == 0 {
					require.NoError(t, tc.before(dir))
				}
				ccltest.Barrier(t, c)
				err := tc.f(t, c, dir)
				require.Error(t, err)
				if tc.is != nil {
					require.ErrorIs(t, err, tc.is)
				}
				if tc.not != nil {
					require.NotErrorIs(t, err, tc.not)
				}
				text := make([]byte, 2000)
				copy(text, err.Error())
				mine := string(text)
				require.NoError(t, ccl.Broadcast(t.Context(), c, text, 0))
				require.Equal(t, string(text), mine)
			}, ccltest.Hosts(3))
		})
	}
}

func FuzzName(f *testing.F) {
	for _, name := range []string{"step-7", "step-7.tmp-3-0123456789abcdef", "x.gone-0123456789abcdef", "step-99999999999999999999", ".tmp-1-"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if e := parseName(name); e.number < -1 || e.sequence < 0 || len(e.of) > len(name) {
			t.Fatalf("%q is %+v", name, e)
		}
	})
}
