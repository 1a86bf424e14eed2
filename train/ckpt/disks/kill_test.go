package disks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/store"
)

var kills = flag.Int("kills", 0, "how many jobs TestKilled kills at random requests, after one at each")

const inChild = "GOCCL_TEST_DISKS"

// A job that is killed before or within anything that a Save or a Keep does to any of the disks has left the old checkpoint or the
// new one, whole, and what the next ones remove.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	all := []store.Store{store.Dir(filepath.Join(dir, "0")), store.Dir(filepath.Join(dir, "1"))}
	step, killed := 1, 0
	once := func(at int) (ended bool) {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", inChild, at, step+1, dir))
		out, err := cmd.CombinedOutput()
		require.NotContains(t, string(out), "FAIL", "it is to be killed")
		on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
			state := loaded(t, c, d, 100)
			require.Contains(t, []int{step, step + 1}, state)
			if err == nil {
				require.Equal(t, step+1, state)
			}
			require.NoError(t, d.Keep(t.Context(), "", 1))
			require.Equal(t, state, loaded(t, c, d, 100))
			if c.Rank() == 0 {
				step = state
			}
		})
		if err != nil {
			killed++
		}
		return err == nil
	}
	saveOn(t, all, nil, 100, 1)
	last := 1
	for !once(last) {
		last += stride(8)
	}
	require.Greater(t, killed, 25/stride(8), "lists, parts, indexes, deletions, on two disks")
	for range *kills {
		once(1 + rand.IntN(last))
	}
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		save(t, c, d, "", 100, step+1)
		require.NoError(t, d.Keep(t.Context(), "", 1))
		require.Equal(t, step+1, loaded(t, c, d, 100))
	})
	for _, s := range all {
		require.Len(t, files(t, s, parts), 1)
	}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		require.NotContains(t, name, ".put-")
		return err
	}))
}

// TestKilledChild is the job that TestKilled kills.
func TestKilledChild(t *testing.T) {
	arg := os.Getenv(inChild)
	if arg == "" {
		return // which is all that it does by itself
	}
	var at, step int
	var dir string
	_, err := fmt.Sscan(arg, &at, &step, &dir)
	require.NoError(t, err)
	var mu sync.Mutex
	n := 0
	die := func(string, string) error {
		mu.Lock()
		if n++; n == at {
			self, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, self.Kill())
			select {}
		}
		mu.Unlock()
		return nil
	}
	var ranks sync.WaitGroup
	for r, b := range boot.Local(2) {
		ranks.Go(func() {
			c, err := ccl.NewComm(context.Background(), b, nil)
			require.NoError(t, err)
			d, err := New(context.Background(), c, &ailing{store.Dir(filepath.Join(dir, fmt.Sprint(r))), die}, nil)
			require.NoError(t, err)
			require.NoError(t, d.Save(context.Background(), ckpt.Step("", step), step, tensors(r, 2, 100, float32(step))))
			require.NoError(t, d.Keep(context.Background(), "", 1))
		})
	}
	ranks.Wait()
}

// A rank that is lost in any call of a Save or a Load is named by the others, which end.
func TestRankIsLost(t *testing.T) {
	for _, what := range []string{"save", "load"} {
		calls := 0
		for call := 8; ; call += stride(5) { // the first ones make the Disks
			all := hosts(t, 3)
			saveOn(t, all, nil, 100, 1)
			ended := false
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				d, err := New(t.Context(), c, all[(c.Rank()+1)%3], nil)
				if err == nil && what == "save" {
					err = d.Save(t.Context(), ckpt.Step("", 2), 2, tensors(c.Rank(), 3, 100, 2))
				} else if err == nil {
					_, err = d.Load(t.Context(), ckpt.Step("", 1), nil, blank(c.Rank(), 3, 100), ckpt.LoadOptions{})
				}
				if c.Rank() == 1 {
					ended = true // it was not lost in there
					for {
						if ccl.Barrier(t.Context(), c) != nil {
							return
						}
					}
				}
				<-c.Done()
				require.ErrorIs(t, c.Err(), ccl.ErrRankLost)
				if err != nil {
					require.True(t, errors.Is(err, ccl.ErrRankLost) || errors.Is(err, ccl.ErrAborted) || strings.Contains(err.Error(), "left the exchange"), err)
				}
			}, ccltest.Kill(1, call))
			on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) { loaded(t, c, d, 100) })
			if ended {
				break
			}
			calls++
		}
		require.Greater(t, calls, 1)
	}
}

// Of two jobs that save one step at once on disks of which one is common, at most one has no error, and its checkpoint is there.
func TestTwoWriters(t *testing.T) {
	for name, theirs := range map[string][]int{"the same disks": {0, 1}, "in another order": {1, 0}, "one in common": {2, 1}, "one in common, first": {1, 2}} {
		for _, first := range []bool{false, true} { // whether the other job ends before this one has put its index, or both put theirs first
			t.Run(fmt.Sprint(name, first), func(t *testing.T) {
				if testing.Short() && name == "in another order" {
					t.Skip("-short: the other cases have two disks in common, and ranks in another order")
				}
				all := hosts(t, 3)
				errs := make([]error, 2)
				begin := func(job int, disks ...store.Store) {
					on(t, disks, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
						err := d.Save(t.Context(), ckpt.Step("", 1), 1, tensors(c.Rank(), 2, 100, 1))
						if c.Rank() == 0 {
							errs[job] = err
						}
					})
				}
				has, may, ended := make(chan int), make(chan int), make(chan int)
				on2 := &ailing{all[theirs[0]].(store.Dir), func(op, name string) error {
					if op == "have put" && strings.HasSuffix(name, "index.json") && !first {
						close(has)
						<-may
					}
					return nil
				}}
				once := sync.OnceFunc(func() {
					go func() {
						defer close(ended)
						begin(1, on2, all[theirs[1]])
					}()
					select {
					case <-has:
					case <-ended:
					}
				})
				let := sync.OnceFunc(func() { close(may) })
				on1 := &ailing{all[0].(store.Dir), func(op, name string) error {
					if strings.HasSuffix(name, "index.json") && op == "put" {
						once()
					} else if strings.HasSuffix(name, "index.json") && op == "have put" {
						let()
					}
					return nil
				}}
				begin(0, on1, all[1])
				<-ended
				lost := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
				require.NotEmpty(t, lost)
				for _, err := range lost {
					require.ErrorIs(t, err, fs.ErrExist)
				}
				on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
					if len(lost) == 2 {
						_, _, err := d.Latest(t.Context(), "")
						require.ErrorIs(t, err, fs.ErrNotExist)
						save(t, c, d, "", 100, 1)
					}
					require.Equal(t, 1, loaded(t, c, d, 100))
					save(t, c, d, "", 100, 2)
					require.NoError(t, d.Keep(t.Context(), "", 1))
				})
				for _, s := range all {
					require.Len(t, files(t, s, parts), 1)
				}
			})
		}
	}
}

// Jobs that have saved one step apart are told so, if both checkpoints are whole. If one is, it counts.
func TestSavedApart(t *testing.T) {
	all := hosts(t, 3)
	for r := range 2 {
		on(t, all[r:r+1], nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
			require.NoError(t, d.Save(t.Context(), ckpt.Step("", 1), 1, tensors(0, 1, 100, 1)))
		})
	}
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		_, _, err := d.Latest(t.Context(), "")
		require.ErrorContains(t, err, "the disks of ranks 0 and 1 have different whole checkpoints step-00000001")
		require.ErrorContains(t, d.Save(t.Context(), ckpt.Step("", 2), 1, nil), "move one of them away")
	})
	require.NoError(t, os.Remove(at(all[0], files(t, all[0], parts)[0])))
	loadOn(t, all, 100, 1)
	on(t, all[2:], nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		_, passed, err := d.Latest(t.Context(), "")
		require.ErrorContains(t, err, "none of the 1 there is whole")
		require.Empty(t, passed)
	})
}
