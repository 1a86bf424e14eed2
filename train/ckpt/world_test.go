package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// ill is how a disk fails at one write, sync or rename.
type ill string

const (
	errs   ill = "an error"
	short  ill = "a write of which a part arrives"
	full   ill = "no space"
	slow   ill = "slow"
	undone ill = "a rename that a power failure undoes"
)

// slowFor is how long a slow disk takes.
const slowFor = 2 * time.Second

// fails is the disk of a rank that is so ill at its n-th write, sync or rename. at is what that was, "" before it.
func (i ill) fails(n int, dir string, at *atomic.Value) *disk {
	return nth(n, func(op, path string) error {
		at.Store(op + " " + path)
		switch i {
		case slow:
			time.Sleep(slowFor)
			return nil
		case full:
			return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
		case short:
			if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); op == "write" && err == nil {
				_, err = f.Write([]byte("half"))
				return errors.Join(&fs.PathError{Op: op, Path: path, Err: syscall.EIO}, err, f.Close())
			}
		case undone:
			if path == filepath.Dir(dir) {
				_ = os.Rename(dir, dir+".was") // it is there after the rename alone
			}
		}
		return &fs.PathError{Op: op, Path: path, Err: syscall.EIO}
	})
}

// Whichever disk of several hosts fails, and however, all ranks are told by what, in time. The newest checkpoint that is
// found is whole, and one that was saved.
func TestDisksThatFail(t *testing.T) {
	const ranks, saves = 3, 6
	var met [5]atomic.Int32
	ways := []ill{errs, short, full, slow, undone}
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			var at [saves + 1]atomic.Value
			ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
				ctx, rnd := t.Context(), rand.New(rand.NewPCG(seed, 0x6469736b)) // the same on all ranks
				saved := 0
				for step := 1; step <= saves; step++ {
					k, victim, n := rnd.IntN(len(ways)), rnd.IntN(ranks), 1+rnd.IntN(9)
					if ways[k] == undone { // rank 0 alone renames, and has few other steps after that
						victim, n = 0, 7+rnd.IntN(3)
					}
					d := &disk{}
					if c.Rank() == victim && step > 1 {
						d = ways[k].fails(n, Step(dir, step), &at[step])
					}
					began := time.Now()
					err := save(ctx, c, d, Step(dir, step), step, vector(c.Rank(), ranks, float32(step)))
					took := time.Since(began)
					what, _ := at[step].Load().(string)
					mayBe := strings.HasPrefix(what, "sync "+dir) && filepath.Dir(Step(dir, step)) == strings.TrimPrefix(what, "sync ")
					switch {
					case what == "" || ways[k] == slow:
						require.NoError(t, err, what)
						saved = step
					default:
						why := map[bool]syscall.Errno{true: syscall.ENOSPC, false: syscall.EIO}[ways[k] == full]
						require.ErrorContains(t, err, why.Error(), "step %d: %v, %s", step, ways[k], what)
						require.ErrorContains(t, err, strings.SplitN(what, " ", 2)[1])
					}
					if what != "" && c.Rank() == 0 {
						met[k].Add(1)
					}
					assert.Less(t, took, time.Second+slowFor, "step %d: %v, %s", step, ways[k], what)
					from, _, err := Latest(ctx, c, dir)
					require.NoError(t, err)
					state, ts := 0, vector(c.Rank(), ranks, 0)
					require.NoError(t, Load(ctx, c, from, &state, ts))
					require.Equal(t, Step(dir, state), from)
					require.Equal(t, vector(c.Rank(), ranks, float32(state)), ts)
					require.True(t, state == saved || mayBe && state == step, "step %d: %v, %s: the newest is %d, and %d was saved",
						step, ways[k], what, state, saved)
					saved = state
				}
			}, ccltest.Hosts(ranks), ccltest.World(seed, simnet.Link{Delay: time.Millisecond, Jitter: time.Millisecond}, nil))
		})
	}
	for k := range met {
		require.Greater(t, met[k].Load(), int32(4), "jobs in which a disk has %s", ways[k])
	}
}
