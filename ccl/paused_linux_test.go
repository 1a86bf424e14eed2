package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// A job that is stopped as a whole, for longer than what it is in may take: Options.Timeout.
const (
	pausedLimit = 5 * time.Second
	pausedFor   = 6 * time.Second
)

func init() { roles["paused in a wait"] = pausedInWait }

// pausedInWait is a rank of TestPauseEndsNoWait. One of the ranks comes only after the pause; the others wait for it then.
func pausedInWait(ctx context.Context, t *testing.T, in string) {
	me := os.Getenv("GOCCL_RANK")
	mark(t, "pid."+me)
	waits := func() { mark(t, "in."+me) }
	comesLate := func() {
		waits()
		require.Eventually(t, func() bool { return isMarked("resumed") }, long, time.Millisecond)
	}
	var log bytes.Buffer
	o := &ccl.Options{PeerTimeout: stoppedPeer, Timeout: pausedLimit, Log: slog.New(slog.NewTextHandler(&log, nil))}
	var c *ccl.Comm
	switch in {
	case "Subset":
		world := joined(ctx, t, o)
		if me == "3" {
			comesLate()
		}
		waits()
		var err error
		c, err = ccl.Subset(ctx, world, []int{3, 1, 0, 2}, 0)
		require.NoError(t, err)
	case "Within":
		o.Timeout = -1
		c = joined(ctx, t, o)
		if me == "3" {
			comesLate()
		}
		waits()
		require.NoError(t, c.On(ccl.Now).Within(pausedLimit).Barrier().Wait(ctx))
	case "Shrink", "Replace":
		if o.Spares = 1; in == "Shrink" {
			o.Spares = 0
		}
		if me == "3" && in == "Replace" {
			waits()
			_, err := ccl.Join(ctx, o)
			require.ErrorIs(t, err, ccl.ErrUnused)
			fmt.Printf("rank %s: all is well\n", me)
			return
		}
		world := joined(ctx, t, o)
		if me == "0" {
			world.Abort(errors.New("on purpose"))
		}
		<-world.Done()
		if me == "2" {
			comesLate()
		}
		waits()
		meets := world.Replace
		if in == "Shrink" {
			meets = world.Shrink
		}
		var err error
		c, err = meets(ctx)
		require.NoError(t, err)
	case "Grow":
		store, err := boot.FileStore(os.Getenv("CCL_TEST_DIR"), nil)
		require.NoError(t, err)
		o.Store = store
		t.Setenv("GOCCL_SIZE", "3")
		if me == "3" {
			t.Setenv("GOCCL_NEWCOMER", "3.1")
			o.Store = &lateSeat{store, comesLate}
			c, err = ccl.Join(ctx, o)
			require.NoError(t, err)
			break
		}
		waits()
		world := joined(ctx, t, o)
		for c = world; c == world; time.Sleep(time.Millisecond) {
			c, err = ccl.Grow(ctx, world, 4)
			require.NoError(t, err)
		}
		require.NotContains(t, log.String(), "came to nothing")
	}
	defer c.Close()
	require.NoError(t, ccl.Barrier(ctx, c))
	fmt.Printf("rank %s: all is well\n", me)
}

// lateSeat is a store from which a newcomer learns its seat, and does not come before the pause is over.
type lateSeat struct {
	boot.Store
	comesLate func()
}

func (s *lateSeat) Get(ctx context.Context, key string) ([]byte, error) {
	b, err := s.Store.Get(ctx, key)
	if err == nil && strings.Contains(key, "seats") {
		s.comesLate()
	}
	return b, err
}

// A pause of the whole job, of a container, say, ends nothing: whoever waits for others has as much time left as it had before.
func TestPauseEndsNoWait(t *testing.T) {
	const n = 4
	for _, in := range []string{"Subset", "Within", "Shrink", "Replace", "Grow"} {
		for _, hosts := range []int{0, 2} {
			if testing.Short() && (hosts == 0) != (in == "Shrink" || in == "Replace") {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d hosts", in, max(hosts, 1)), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				over := make(chan struct{})
				go func() {
					defer close(over)
					pids := pidsIn(t, dir, n)
					for files(dir, "in.*") < n && t.Context().Err() == nil {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(200 * time.Millisecond) // those that have said that they wait do
					for _, pid := range pids {
						_ = syscall.Kill(pid, syscall.SIGSTOP)
					}
					time.Sleep(pausedFor)
					_ = os.WriteFile(filepath.Join(dir, "resumed"), nil, 0o600)
					for _, pid := range pids {
						_ = syscall.Kill(pid, syscall.SIGCONT)
					}
				}()
				out := processes(t, n, hosts, "paused in a wait", in, "CCL_TEST_DIR="+dir)
				<-over
				for r := range n {
					require.Contains(t, out, fmt.Sprintf("rank %d: all is well\n", r), out)
				}
			})
		}
	}
}
