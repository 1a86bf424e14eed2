package ckpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
)

// ailing is a Store that asks fault before and after what each of its methods does to the storage.
type ailing struct {
	store.Store
	fault func(op, name string, after bool) error
}

func (a *ailing) ask(op, name string, do func() error) error {
	if err := a.fault(op, name, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return a.fault(op, name, true)
}

func (a *ailing) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	return a.ask("put", name, func() error { return a.Store.Put(ctx, name, size, fresh, write) })
}

func (a *ailing) Open(ctx context.Context, name string) (o store.Object, err error) {
	err = a.ask("open", name, func() error { o, err = a.Store.Open(ctx, name); return err })
	return &ailingObject{o, a, name}, err
}

// ailingObject asks before it is read.
type ailingObject struct {
	store.Object
	a    *ailing
	name string
}

func (o *ailingObject) ReadAt(b []byte, at int64) (int, error) {
	if err := o.a.fault("read", o.name, false); err != nil {
		return 0, err
	}
	return o.Object.ReadAt(b, at)
}

func (a *ailing) List(ctx context.Context, prefix string) (es []store.Entry, err error) {
	return es, a.ask("list", prefix, func() error { es, err = a.Store.List(ctx, prefix); return err })
}

func (a *ailing) Delete(ctx context.Context, name string) error {
	return a.ask("delete", name, func() error { return a.Store.Delete(ctx, name) })
}

// Sweep is that of the Dir.
func (a *ailing) Sweep(ctx context.Context, prefix string, gone func(string) bool) error {
	return a.ask("sweep", prefix, func() error { return a.Store.(store.Sweeper).Sweep(ctx, prefix, gone) })
}

var randoms = regexp.MustCompile(`-[0-9a-f]{16}\.`)

// objectsIn are the names in s, with R for what is random; an empty one ends in " empty".
func objectsIn(t testing.TB, s store.Store) (names []string) {
	es, err := s.List(context.Background(), "")
	require.NoError(t, err)
	for _, e := range es {
		name := randoms.ReplaceAllString(e.Name, "-R.")
		if slots.Empty(e.Size) {
			name += " empty"
		}
		names = append(names, name)
	}
	return names
}

// loads is the state and the values of a checkpoint, which are alike.
func loads(t testing.TB, c *ccl.Comm, h Shelf, name string) int {
	state, ts := 0, vector(c.Rank(), c.Size(), 0)
	_, err := h.Load(t.Context(), c, name, &state, ts, LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, vector(c.Rank(), c.Size(), float32(state)), ts)
	return state
}

func TestShelf(t *testing.T) {
	dir := store.Dir(t.TempDir())
	h := Shelf{dir}
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		_, _, err := h.Latest(ctx, c, "run")
		require.ErrorIs(t, err, fs.ErrNotExist)
		for step := 1; step <= 3; step++ {
			require.NoError(t, h.Save(ctx, c, Step("run", step), step, vector(c.Rank(), 3, float32(step))))
		}
		require.ErrorIs(t, h.Save(ctx, c, Step("run", 2), 2, vector(c.Rank(), 3, 2)), fs.ErrExist)
		latest, passed, err := h.Latest(ctx, c, "run")
		require.NoError(t, err)
		require.Empty(t, passed)
		require.Equal(t, "run/step-00000003", latest)
		require.Equal(t, 3, loads(t, c, h, latest))
		require.NoError(t, h.Forget(ctx, c, "run", 2))
		latest, _, err = h.Latest(ctx, c, "run")
		require.NoError(t, err)
		require.Equal(t, "run/step-00000002", latest)
		require.NoError(t, h.Save(ctx, c, Step("run", 3), 33, vector(c.Rank(), 3, 33)))
		require.Equal(t, 33, loads(t, c, h, "run/step-00000003"))
		require.NoError(t, h.Keep(ctx, c, "run", 1))
		require.NoError(t, ccl.Barrier(ctx, c))
		require.Equal(t, []string{"run/step-00000001/index.json empty", "run/step-00000002/index.json empty",
			"run/step-00000003/index.1.json", "run/step-00000003/index.json empty",
			"run/step-00000003/part-00001-of-00003.1-3-R.safetensors", "run/step-00000003/part-00002-of-00003.1-3-R.safetensors",
			"run/step-00000003/part-00003-of-00003.1-3-R.safetensors"}, objectsIn(t, dir))
		_, err = h.Load(ctx, c, Step("run", 1), nil, nil, LoadOptions{})
		require.ErrorIs(t, err, fs.ErrNotExist)
		s, err := h.NewSaver(ctx, c)
		require.NoError(t, err)
		require.NoError(t, s.Save(ctx, "final", 9, vector(c.Rank(), 3, 9)))
		require.NoError(t, s.Close(ctx))
		got, err := h.Verify(ctx, "final")
		require.NoError(t, err)
		require.Len(t, got.Files, 3)
		for _, f := range got.Files {
			require.NoError(t, f.Damage)
		}
		state := 0 // a name that was downloaded is a checkpoint in a directory
		ts := vector(c.Rank(), 3, 0)
		require.NoError(t, Load(ctx, c, path.Join(string(dir), "final"), &state, ts))
		require.Equal(t, vector(c.Rank(), 3, 9), ts)
		s, err = h.NewSaver(ctx, c)
		require.NoError(t, err)
		for _, name := range []string{"../x", "/x", "."} {
			require.NoError(t, s.Save(ctx, name, nil, nil))
			require.ErrorContains(t, s.Wait(ctx), "no name in a Store")
		}
		require.NoError(t, s.Close(ctx))
		for name, bad := range map[string]Shelf{"final": {}, "../x": h, "/x": h, ".": h} {
			require.Error(t, bad.Save(ctx, c, name, nil, nil), name)
		}
	})
}

// Of two that meet at a name one wins, and what the other has left goes.
func TestShelfTwoWriters(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		for _, tc := range []struct {
			name   string
			meet   func(h Shelf) error // while the writer has put its part, and not its index
			fails  error
			latest string
			value  int
			left   []string
		}{
			{"another saves the step", func(h Shelf) error { return h.Save(t.Context(), c, Step("", 2), 22, vector(0, 1, 22)) },
				fs.ErrExist, "step-00000002", 22, []string{"step-00000001/index.json", "step-00000001/part-00001-of-00001.0-1-R.safetensors",
					"step-00000002/index.json", "step-00000002/part-00001-of-00001.0-3-R.safetensors"}},
			{"Keep, which leaves what may be the next", func(h Shelf) error { return h.Keep(t.Context(), c, "", 1) },
				nil, "step-00000002", 2, []string{"step-00000001/index.json", "step-00000001/part-00001-of-00001.0-1-R.safetensors",
					"step-00000002/index.json", "step-00000002/part-00001-of-00001.0-2-R.safetensors"}},
			{"Keep, when a later one was saved", func(h Shelf) error {
				err := h.Save(t.Context(), c, Step("", 3), 3, vector(0, 1, 3))
				return errors.Join(err, h.Keep(t.Context(), c, "", 1))
			}, fs.ErrExist, "step-00000003", 3, []string{"step-00000001/index.json empty", "step-00000002/index.json empty",
				"step-00000003/index.json", "step-00000003/part-00001-of-00001.0-3-R.safetensors"}},
			{"Forget", func(h Shelf) error { return h.Forget(t.Context(), c, "", 1) },
				fs.ErrExist, "step-00000001", 1, []string{"step-00000001/index.json", "step-00000001/part-00001-of-00001.0-1-R.safetensors",
					"step-00000002/index.json empty"}},
		} {
			dir := store.Dir(t.TempDir())
			h := Shelf{dir}
			require.NoError(t, h.Save(t.Context(), c, Step("", 1), 1, vector(0, 1, 1)))
			met := false
			slow := Shelf{&ailing{dir, func(op, name string, after bool) error {
				if op == "put" && name == Step("", 2)+"/index.json" && !after && !met {
					met = true
					require.NoError(t, tc.meet(h), tc.name)
				}
				return nil
			}}}
			err := slow.Save(t.Context(), c, Step("", 2), 2, vector(0, 1, 2))
			require.True(t, met, tc.name)
			if tc.fails == nil {
				require.NoError(t, err, tc.name)
			} else {
				require.ErrorIs(t, err, tc.fails, tc.name)
			}
			latest, passed, err := h.Latest(t.Context(), c, "")
			require.NoError(t, err, tc.name)
			require.Empty(t, passed, tc.name)
			require.Equal(t, tc.latest, latest, tc.name)
			require.Equal(t, tc.value, loads(t, c, h, latest), tc.name)
			require.Equal(t, tc.left, objectsIn(t, dir), tc.name)
		}
	})
}

var errAiling = &fs.PathError{Op: "put", Path: "x", Err: syscall.EIO}

// Whatever a Store does not answer, or does and does not say so, or does later: Latest is the old checkpoint or the new
// one, whole, and the new one if Save returned no error. The next Save, and Keep, leave nothing of it.
func TestShelfFails(t *testing.T) {
	for _, way := range []string{"not done", "done", "not done, and the next thirty neither", "done later"} {
		t.Run(way, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				for at := 1; ; at++ {
					name := make([]byte, 256)
					if c.Rank() == 0 {
						copy(name, t.TempDir())
					}
					require.NoError(t, ccl.Broadcast(ctx, c, name, 0))
					dir := store.Dir(strings.TrimRight(string(name), "\x00"))
					h := Shelf{dir}
					require.NoError(t, h.Save(ctx, c, Step("", 1), 1, vector(c.Rank(), 2, 1)))
					n, met := 0, false
					var later func()
					var mu sync.Mutex
					a := &ailing{Store: dir}
					a.fault = func(op, object string, after bool) error {
						mu.Lock()
						defer mu.Unlock()
						if !after {
							n++
						}
						most := 0
						if strings.Contains(way, "thirty") {
							most = 30
						}
						if c.Rank() != 0 || n < at || n > at+most || after != (way == "done") {
							return nil
						}
						met = true
						if way == "done later" && op == "put" && strings.HasSuffix(object, "index.json") {
							later = func() {
								err := dir.Put(ctx, object, 4, true, func(w io.Writer) error { _, err := w.Write([]byte("late")); return err })
								require.ErrorIs(t, err, fs.ErrExist, "what has failed has decided the slot")
							}
						}
						return errAiling
					}
					err := Shelf{a}.Save(ctx, c, Step("", 2), 2, vector(c.Rank(), 2, 2))
					if later != nil && err != nil {
						later()
					}
					require.NoError(t, ccl.Barrier(ctx, c))
					latest, passed, err2 := h.Latest(ctx, c, "")
					require.NoError(t, err2)
					require.Empty(t, passed)
					got := loads(t, c, h, latest)
					require.Equal(t, Step("", got), latest)
					if err == nil {
						require.Equal(t, 2, got, "operation %d", at)
					} else {
						require.ErrorIs(t, err, syscall.EIO, "operation %d", at)
					}
					if got == 1 { // the step again, after what has failed
						require.NoError(t, h.Save(ctx, c, Step("", 2), 2, vector(c.Rank(), 2, 2)))
					}
					require.NoError(t, h.Save(ctx, c, Step("", 3), 3, vector(c.Rank(), 2, 3)))
					require.NoError(t, h.Keep(ctx, c, "", 1))
					if c.Rank() == 0 {
						left := objectsIn(t, dir)
						parts := slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !strings.Contains(name, "/part-") })
						require.Len(t, parts, 2, "operation %d: %v", at, left)
						require.Equal(t, 3, loads2(t, h, Step("", 3)))
					}
					again := []int32{0}
					if met {
						again[0] = 1
					}
					require.NoError(t, ccl.AllReduce(ctx, c, again, again, ccl.Max))
					if again[0] == 0 {
						require.Greater(t, at, 6)
						return
					}
				}
			})
		})
	}
}

// A job that fails after its index was put leaves the checkpoint whole, whatever Save returns.
func TestShelfPublished(t *testing.T) {
	dir := store.Dir(t.TempDir())
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &ailing{dir, func(op, name string, after bool) error {
			if op == "put" && path.Base(name) == indexName && after {
				cancel()
			}
			return nil
		}}
		err := Shelf{s}.Save(ctx, c, Step("", 1), 1, vector(c.Rank(), 2, 1))
		if c.Rank() == 0 {
			require.Error(t, err)
			require.Equal(t, 1, loads2(t, Shelf{dir}, Step("", 1)))
		}
	})
}

// loads2 is the state of a checkpoint, which one process reads.
func loads2(t testing.TB, h Shelf, name string) int {
	c, err := h.Verify(context.Background(), name)
	require.NoError(t, err)
	for _, f := range c.Files {
		require.NoError(t, f.Damage)
	}
	n, err := strconv.Atoi(string(c.State))
	require.NoError(t, err)
	return n
}

// A Store that fails is no damage: nothing older is taken in the place of what could not be read, and nothing removed. What
// is damaged gives way to its step.
func TestShelfDamaged(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		dir := store.Dir(t.TempDir())
		h := Shelf{dir}
		for step := 1; step <= 2; step++ {
			require.NoError(t, h.Save(ctx, c, Step("", step), step, vector(0, 1, float32(step))))
		}
		for _, op := range []string{"list", "open", "read"} {
			down := Shelf{&ailing{dir, func(o, name string, _ bool) error {
				if o == op && !strings.HasSuffix(name, Step("", 1)) {
					return errAiling
				}
				return nil
			}}}
			_, _, err := down.Latest(ctx, c, "")
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorIs(t, down.Keep(ctx, c, "", 1), syscall.EIO)
			require.ErrorIs(t, down.Forget(ctx, c, "", 1), syscall.EIO)
			require.ErrorIs(t, down.Save(ctx, c, Step("", 2), 2, vector(0, 1, 2)), syscall.EIO)
		}
		require.Len(t, objectsIn(t, dir), 4)
		es, err := dir.List(ctx, Step("", 2)+"/part")
		require.NoError(t, err)
		require.NoError(t, dir.Delete(ctx, es[0].Name))
		latest, passed, err := h.Latest(ctx, c, "")
		require.NoError(t, err)
		require.Equal(t, Step("", 1), latest)
		require.Len(t, passed, 1)
		require.ErrorContains(t, passed[0], "is missing")
		require.NoError(t, h.Save(ctx, c, Step("", 2), 2, vector(0, 1, 2)))
		require.Equal(t, 2, loads(t, c, h, Step("", 2)))
		require.NoError(t, dir.Put(ctx, Step("", 2)+"/index.1.json", 0, false, func(io.Writer) error { return nil }))
		latest, passed, err = h.Latest(ctx, c, "") // which was cut off, and not removed
		require.NoError(t, err)
		require.Equal(t, Step("", 1), latest)
		require.Len(t, passed, 1)
		_, err = h.Load(ctx, c, Step("", 2), nil, nil, LoadOptions{})
		require.ErrorContains(t, err, "index")
		require.NotErrorIs(t, err, fs.ErrNotExist)
	})
}

// A process that is killed before or after anything that a Save does to a Store has left the old checkpoint or the new one,
// and what the next ones remove.
func TestShelfKilled(t *testing.T) {
	ccltest.Run(t, 1, func(tb testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		dir := t.TempDir()
		h := Shelf{store.Dir(dir)}
		require.NoError(t, h.Save(ctx, c, Step("", 1), 1, vector(0, 1, 1)))
		killed, step := 0, 2
		for at := 1; ; at++ {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestShelfKilledChild$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("GOCCL_TEST_SHELF=%d %d %s", at, step, dir))
			out, err := cmd.CombinedOutput()
			latest, passed, err2 := h.Latest(ctx, c, "")
			require.NoError(t, err2)
			require.Empty(t, passed)
			require.Contains(t, []int{step - 1, step}, loads(t, c, h, latest))
			require.Equal(t, Step("", loads(t, c, h, latest)), latest)
			if err == nil {
				require.Equal(t, Step("", step), latest)
				break
			}
			require.NotContains(t, string(out), "FAIL", "it is to be killed")
			killed++
			if latest == Step("", step) {
				step++
			}
		}
		require.Greater(t, killed, 8, "before and after the list, the part, the index, and what cleans up")
		require.NoError(t, h.Save(ctx, c, Step("", step+1), step+1, vector(0, 1, float32(step+1))))
		require.NoError(t, h.Keep(ctx, c, "", 1))
		left := slices.DeleteFunc(objectsIn(t, store.Dir(dir)), func(n string) bool { return strings.HasSuffix(n, " empty") })
		require.Len(t, left, 2, "%v", left)
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
			require.NotContains(t, name, ".put-")
			return err
		}))
	})
}

// TestShelfKilledChild is the process that TestShelfKilled kills: before each thing, within each Put, and after it.
func TestShelfKilledChild(t *testing.T) {
	arg := os.Getenv("GOCCL_TEST_SHELF")
	if arg == "" {
		return // which is all that it does by itself
	}
	var at, step int
	var dir string
	_, err := fmt.Sscan(arg, &at, &step, &dir)
	require.NoError(t, err)
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	n := 0
	die := func(string, string, bool) error {
		if n++; n == at {
			self, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, self.Kill())
			select {}
		}
		return nil
	}
	s := &dying{ailing{store.Dir(dir), die}}
	require.NoError(t, Shelf{s}.Save(t.Context(), c, Step("", step), step, vector(0, 1, float32(step))))
}

// dying also asks when the first bytes of an object were written.
type dying struct{ ailing }

func (d *dying) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	return d.ailing.Put(ctx, name, size, fresh, func(w io.Writer) error { return write(&asks{w, d}) })
}

type asks struct {
	w io.Writer
	d *dying
}

func (a *asks) Write(b []byte) (int, error) {
	n, err := a.w.Write(b[:len(b)/2])
	if err == nil {
		err = a.d.fault("write", "", false)
	}
	if err == nil {
		var m int
		m, err = a.w.Write(b[len(b)/2:])
		n += m
	}
	return n, err
}
