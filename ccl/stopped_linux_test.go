package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// A process that is stopped, and goes on when the others have given it up; and a job that is stopped as a whole.
const (
	stoppedPeer = 2 * time.Second         // far longer than a loaded machine keeps a process waiting
	stoppedFor  = 4500 * time.Millisecond // longer than that, and than it takes to be noticed
)

// mark tells the other processes of a test something.
func mark(t testing.TB, name string) {
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("CCL_TEST_DIR"), name), []byte(strconv.Itoa(os.Getpid())), 0o600))
}

func isMarked(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("CCL_TEST_DIR"), name))
	return err == nil
}

// waitFor waits for a condition, with a deadline.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !is(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), what)
	}
}

// isStopped reports whether a process is stopped now, with all of its threads: they stop one after another.
func isStopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, t := range threads {
		b, _ := os.ReadFile(t)
		if _, rest, _ := strings.Cut(string(b), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return len(threads) > 0
}

// stopSelf stops this process, and has it go on later.
func stopSelf(t testing.TB) {
	require.NoError(t, exec.Command("sh", "-c", fmt.Sprintf("(sleep %v; kill -CONT %d) >/dev/null 2>&1 &", stoppedFor.Seconds(), os.Getpid())).Run())
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
}

// keepCalling makes calls on c until all of its ranks say that it is enough.
func keepCalling(ctx context.Context, c *ccl.Comm, enough func() bool) error {
	for over := []int32{0}; ; {
		if over[0] = 0; enough() {
			over[0] = 1
		}
		if err := ccl.AllReduce(ctx, c, over, over, ccl.Min); err != nil || over[0] == 1 {
			return err
		}
		time.Sleep(time.Millisecond) // or the processes of the test starve each other
	}
}

// runStopped runs n processes of the test named on some hosts, and returns what they print.
func runStopped(t *testing.T, name string, n, hosts int, args ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 2*long)
	defer cancel()
	var out bytes.Buffer
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	err := boot.Spawn(ctx, boot.Command{N: n, Hosts: hosts, Path: os.Args[0], KeepGoing: true,
		Args: []string{"-test.run=^" + name + "$"}, Env: append(env, args...), Stdout: &out, Stderr: &out})
	require.NoError(t, ctx.Err(), "%v\n%s", err, &out)
	require.NotRegexp(t, `SIGSEGV|SIGBUS|fatal error|FAIL`, out.String())
	return out.String()
}

// TestStoppedRankProcess is what the processes run that TestStoppedRankIsOut starts. The victim is stopped until the
// others have given it up. Those have Comms without it, one made before and one by Shrink, which go on.
func TestStoppedRankProcess(t *testing.T) {
	number, in, ok := strings.Cut(os.Getenv("CCL_TEST_STOPPED"), " ")
	if !ok {
		return
	}
	victim, err := strconv.Atoi(number)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var log bytes.Buffer
	world, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: stoppedPeer, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer world.Close()
	me, color := world.Rank(), 0
	if me == victim {
		color = -1
	}
	rest, err := world.Split(ctx, color, 0)
	require.NoError(t, err)
	require.NoError(t, ccl.Barrier(ctx, world))

	var e *ccl.Error
	if me == victim {
		if in == "Shrink" { // the last comes when this one is stopped in it
			mark(t, "victim")
			time.AfterFunc(100*time.Millisecond, func() { stopSelf(t) })
		} else {
			stopSelf(t)
			require.ErrorAs(t, callOn(ctx, world), &e)
			require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
			require.Equal(t, me, e.Peer, "%v", e)
		}
		for range 20 { // it stays so, and returns at once
			_, err := world.Shrink(ctx)
			require.ErrorAs(t, err, &e)
			require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
			require.Equal(t, "Shrink", e.Op)
			require.Equal(t, me, e.Peer, "%v", e)
		}
		mark(t, "back")
		time.Sleep(time.Second) // its accusations, if it had any, have time to travel
		mark(t, "over")
		fmt.Printf("rank %d: has been given up\n", me)
		return
	}
	defer rest.Close()
	if in == "Shrink" {
		if me == (victim+1)%world.Size() {
			var b []byte
			waitFor(t, "the victim is there", func() bool {
				b, _ = os.ReadFile(filepath.Join(os.Getenv("CCL_TEST_DIR"), "victim"))
				return len(b) > 0
			})
			pid, err := strconv.Atoi(string(b))
			require.NoError(t, err)
			waitFor(t, "the victim is stopped", func() bool { return isStopped(pid) })
		}
	} else {
		require.ErrorAs(t, callOn(ctx, world), &e)
		require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
		require.Equal(t, victim, e.Peer, "%v", e)
	}
	left, err := world.Shrink(ctx)
	require.NoError(t, err)
	defer left.Close()
	require.Equal(t, world.Size()-1, left.Size())
	enough := func() bool { return isMarked("over") }
	require.NoError(t, keepCalling(ctx, rest, enough), "the Comm made by Split")
	require.NoError(t, keepCalling(ctx, left, enough), "the Comm made by Shrink")
	require.NoError(t, rest.Err())
	require.NoError(t, left.Err())
	fmt.Printf("rank %d: goes on with %d\n", me, left.Size())
}

// A rank that has been given up, and goes on, accuses nobody: Comms that it is no member of go on. It hears what it is
// itself, and Shrink says so at once, as often as it is called.
func TestStoppedRankIsOut(t *testing.T) {
	const n = 4
	for _, hosts := range []int{0, 2, 4} {
		for _, victim := range []int{0, 3} {
			for _, in := range []string{"a call", "Shrink"} {
				if hosts == 0 && victim == 3 || testing.Short() && (victim == 3 || hosts != 2 || in == "Shrink") {
					continue
				}
				t.Run(fmt.Sprintf("rank %d of %d on %d hosts, stopped in %s", victim, n, hosts, in), func(t *testing.T) {
					t.Parallel()
					out := runStopped(t, "TestStoppedRankProcess", n, hosts, fmt.Sprintf("CCL_TEST_STOPPED=%d %s", victim, in), "CCL_TEST_DIR="+t.TempDir())
					for r := range n {
						if r == victim {
							require.Contains(t, out, fmt.Sprintf("rank %d: has been given up\n", r))
						} else {
							require.Contains(t, out, fmt.Sprintf("rank %d: goes on with %d\n", r, n-1), out)
						}
					}
				})
			}
		}
	}
}

// TestPausedJobProcess is what the processes run that TestPausedJobGoesOn starts.
func TestPausedJobProcess(t *testing.T) {
	in := os.Getenv("CCL_TEST_PAUSED")
	if in == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: stoppedPeer})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, ccl.Barrier(ctx, c))
	me := c.Rank()
	mark(t, fmt.Sprintf("pid.%d", me))
	over := func() bool { return isMarked("over") }
	switch in {
	case "no call":
		waitFor(t, "the pause is over", over)
	case "a call":
		require.NoError(t, keepCalling(ctx, c, over))
	case "Shrink":
		if me == 0 {
			waitFor(t, "all are there", func() bool { return isMarked("pid.1") && isMarked("pid.2") && isMarked("pid.3") })
			c.Abort(errors.New("on purpose"))
		}
		<-c.Done()
		if me == c.Size()-1 { // the others wait in Shrink
			waitFor(t, "the pause is over", over)
		}
		left, err := c.Shrink(ctx)
		require.NoError(t, err)
		defer left.Close()
		c = left
	}
	require.NoError(t, c.Err())
	require.Equal(t, 4, c.Size())
	require.NoError(t, ccl.Barrier(ctx, c))
	fmt.Printf("rank %d: all is well\n", me)
}

// A pause of the whole job is nobody's silence: of a container, of a virtual machine, or of all processes by a signal.
func TestPausedJobGoesOn(t *testing.T) {
	const n = 4
	for _, hosts := range []int{0, 2, 4} {
		for _, in := range []string{"no call", "a call", "Shrink"} {
			if testing.Short() && (hosts != 2 || in != "a call") {
				continue
			}
			t.Run(fmt.Sprintf("in %s on %d hosts", in, hosts), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				over := make(chan struct{})
				go func() {
					defer close(over)
					var pids []int
					for len(pids) < n && t.Context().Err() == nil {
						b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pid.%d", len(pids))))
						if pid, _ := strconv.Atoi(string(b)); pid > 0 {
							pids = append(pids, pid)
						} else {
							time.Sleep(time.Millisecond)
						}
					}
					time.Sleep(100 * time.Millisecond) // anywhere
					for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
						for _, pid := range pids {
							_ = syscall.Kill(pid, s)
						}
						time.Sleep(stoppedFor) // and long enough after it for a loss to be noticed
					}
					_ = os.WriteFile(filepath.Join(dir, "over"), nil, 0o600)
				}()
				out := runStopped(t, "TestPausedJobProcess", n, hosts, "CCL_TEST_PAUSED="+in, "CCL_TEST_DIR="+dir)
				<-over
				for r := range n {
					require.Contains(t, out, fmt.Sprintf("rank %d: all is well\n", r), out)
				}
			})
		}
	}
}

// TestEndWhileStoppedProcess is what the processes run that TestEndWhileStopped starts.
func TestEndWhileStoppedProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_PAUSED") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: stoppedPeer})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, ccl.Barrier(ctx, c))
	mark(t, fmt.Sprintf("pid.%d", c.Rank()))
	<-c.Done()
	var e *ccl.Error
	require.ErrorAs(t, c.Err(), &e)
	fmt.Printf("rank %d: code %d peer %d certain %v\n", c.Rank(), e.Code, e.Peer, e.Certain)
}

// A rank of another host that has ended while this one stood still may have gone on without it before: its end is not certain.
func TestEndWhileStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	over := make(chan struct{})
	go func() {
		defer close(over)
		var pids []int
		for len(pids) < 2 && t.Context().Err() == nil {
			b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pid.%d", len(pids))))
			if pid, _ := strconv.Atoi(string(b)); pid > 0 {
				pids = append(pids, pid)
			} else {
				time.Sleep(time.Millisecond)
			}
		}
		if len(pids) == 2 {
			_ = syscall.Kill(pids[1], syscall.SIGSTOP)
			for !isStopped(pids[1]) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			_ = syscall.Kill(pids[0], syscall.SIGKILL)
			time.Sleep(stoppedPeer * 3 / 4)
			_ = syscall.Kill(pids[1], syscall.SIGCONT)
		}
	}()
	out := runStopped(t, "TestEndWhileStoppedProcess", 2, 2, "CCL_TEST_PAUSED=1", "CCL_TEST_DIR="+dir)
	<-over
	require.Contains(t, out, fmt.Sprintf("rank 1: code %d peer 0 certain false\n", ccl.ErrRankLost), out)
}
