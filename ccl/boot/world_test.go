package boot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// ill is how the shared disk looks to one host, at one step that it takes there.
type ill string

const (
	errs  ill = "an error"
	short ill = "a write of which a part arrives"
	full  ill = "no space"
	slow  ill = "slow"
	lost  ill = "a rename that is lost"
	stale ill = "a directory as it was"
)

// Limits of the test: of the bootstrap; of a disk that is slow, or looks as it did; of a rank that hears of a fault.
const (
	meetMost = 10 * time.Second
	slowFor  = 2 * time.Second
	tellMost = meetMost + 3*time.Second
)

// fails is a disk that is so ill from its n-th step of those that it may be ill at, for one step, or for a while. at is what
// that step was, "" before it.
func (i ill) fails(n int, at *atomic.Value) func(op, path string) error {
	var steps atomic.Int32
	var until time.Time
	return func(op, path string) error {
		switch {
		case i == lost && op != "rename", i == stale && op != "read":
			return nil
		case i == stale && time.Now().Before(until):
			return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
		case int(steps.Add(1)) != n:
			return nil
		}
		at.Store(op + " " + path)
		switch i {
		case slow:
			time.Sleep(slowFor)
			return nil
		case lost: // some time after all have been told that it is there
			time.AfterFunc(time.Microsecond, func() { os.Remove(path) })
			return nil
		case stale:
			until = time.Now().Add(slowFor)
			return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
		case full:
			return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
		case short:
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); op == "write" && err == nil {
				_, err = f.WriteString("half")
				return errors.Join(&fs.PathError{Op: op, Path: path, Err: syscall.EIO}, err, f.Close())
			}
		}
		return &fs.PathError{Op: op, Path: path, Err: syscall.EIO}
	}
}

// Whatever the shared disk does to one of several hosts that meet by a FileStore there, the job begins whole, or no
// rank has a Comm, and all know in time: the one whose disk fails which file it is, and why, and rank 0 tells the others.
func TestSharedDisksThatFail(t *testing.T) {
	const size = 3
	ways := []ill{errs, short, full, slow, lost, stale}
	var met, whole [6]int
	for seed := range uint64(60) {
		k := int(seed) % len(ways)
		rnd := rand.New(rand.NewPCG(seed, 0x6469736b))
		victim, n := rnd.IntN(size), 1+rnd.IntN(8)
		if ways[k] == lost {
			n = 1
		}
		var at atomic.Value
		cs, errs, took := [size]bool{}, [size]error{}, [size]time.Duration{}
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			world := simnet.New(seed, size, simnet.Link{Delay: time.Millisecond, Jitter: time.Millisecond})
			began := time.Now()
			var all sync.WaitGroup
			for r := range size {
				all.Go(func() {
					s, err := boot.FileStore(dir, []byte(strings.Repeat("s", 32)))
					if err == nil && r == victim {
						s = boot.WithDisk(s, ways[k].fails(n, &at))
					}
					var c *ccl.Comm
					if err == nil {
						c, err = begin(world.Host(r).Context(t.Context()), s, r, size)
					}
					errs[r], took[r], cs[r] = err, time.Since(began), c != nil
					if c != nil {
						defer c.Close()
						ctx, cancel := context.WithTimeout(t.Context(), meetMost)
						defer cancel()
						errs[r] = ccl.Barrier(ctx, c)
					}
				})
			}
			all.Wait()
			time.Sleep(20 * time.Second) // what outlives a Close for a while comes to its end
		})
		what, _ := at.Load().(string)
		text := fmt.Sprintf("seed %d, rank %d, %v at step %d (%s): %v after %v", seed, victim, ways[k], n, what, errs, took)
		for r := range size {
			require.Equal(t, cs[0], cs[r], text)
			assert.Less(t, took[r], tellMost, text)
			require.Equal(t, cs[r], errs[r] == nil, text)
		}
		met[k] += min(len(what), 1)
		op, path, _ := strings.Cut(what, " ")
		switch {
		case what == "" || ways[k] == slow || ways[k] == stale:
			require.True(t, cs[0], text)
			whole[k]++
		case cs[0]: // all had read what was lost then
			require.Equal(t, lost, ways[k], text)
			whole[k]++
		case ways[k] == lost:
			require.ErrorContains(t, errors.Join(errs[:]...), "the store cannot get job/", text) // no rank knows more: there is no such file
			require.ErrorContains(t, errors.Join(errs[:]...), "no response from: rank", text)
		default:
			why := map[bool]syscall.Errno{true: syscall.ENOSPC, false: syscall.EIO}[ways[k] == full]
			for r := range size { // all are told
				require.ErrorContains(t, errs[r], why.Error(), text)
				require.ErrorContains(t, errs[r], op+" "+filepath.Join(dir, filepath.Base(path)), text)
				require.Less(t, took[r], time.Second, text)
			}
		}
	}
	for k := range ways {
		require.Greater(t, met[k], 2, "jobs in which a disk has %s: %v", ways[k], met)
	}
	t.Logf("of %d jobs %v met it, and %v began", 60/len(ways), met, whole)
}

// begin makes the Comm of a job that meets in s.
func begin(ctx context.Context, s boot.Store, rank, size int) (*ccl.Comm, error) {
	short, cancel := context.WithTimeout(ctx, meetMost)
	defer cancel()
	b, err := boot.NewStore(s, "job", rank, size)
	if err != nil {
		return nil, err
	}
	return ccl.NewComm(short, onHost{b, rank}, &ccl.Options{Timeout: 4 * time.Second, PeerTimeout: 2 * time.Second,
		Log: slog.New(slog.DiscardHandler)})
}

// onHost is a bootstrap on a host of its own.
type onHost struct {
	*boot.Stored
	rank int
}

func (h onHost) HostID() string { return fmt.Sprint("host-", h.rank) }
