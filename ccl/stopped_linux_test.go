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
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
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

// pidsIn are the processes of n ranks, which have marked that in dir as pid.0 and so on: fewer if the test ends before.
func pidsIn(t *testing.T, dir string, n int) (pids []int) {
	for len(pids) < n && t.Context().Err() == nil {
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pid.%d", len(pids))))
		if pid, _ := strconv.Atoi(string(b)); pid > 0 {
			pids = append(pids, pid)
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	return pids
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

// stopSelf stops this process, and has it go on when n others have marked that they do.
func stopSelf(t testing.TB, n int) {
	goOn := fmt.Sprintf("(for i in $(seq 1200); do set -- %s/on.*; test $# -ge %d && break; sleep 0.05; done; kill -CONT %d) >/dev/null 2>&1 &",
		os.Getenv("CCL_TEST_DIR"), n, os.Getpid())
	require.NoError(t, exec.Command("sh", "-c", goOn).Run())
	stopHere(t)
}

// stopHere stops this process before it returns: a signal to the process may come later, by another thread.
func stopHere(t testing.TB) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP))
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

func init() {
	roles["stopped"], roles["left behind"], roles["paused"], roles["end while stopped"] = stoppedRank, leftBehind, pausedRank, endWhileStopped
}

// stoppedRank is a rank of TestStoppedRankIsOut. The victim is stopped until the others have given it up. Those have Comms without it,
// one made before and one by Shrink, which go on.
func stoppedRank(ctx context.Context, t *testing.T, arg string) {
	number, in, _ := strings.Cut(arg, " ")
	victim, err := strconv.Atoi(number)
	require.NoError(t, err)
	var log bytes.Buffer
	world := joined(ctx, t, &ccl.Options{PeerTimeout: stoppedPeer, Log: slog.New(slog.NewTextHandler(&log, nil))})
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
			time.AfterFunc(100*time.Millisecond, func() { stopSelf(t, world.Size()-1) })
		} else {
			stopSelf(t, world.Size()-1)
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
			require.Eventually(t, func() bool {
				b, _ = os.ReadFile(filepath.Join(os.Getenv("CCL_TEST_DIR"), "victim"))
				return len(b) > 0
			}, long, time.Millisecond, "the victim is there")
			pid, err := strconv.Atoi(string(b))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return isStopped(pid) }, long, time.Millisecond, "the victim is stopped")
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
	mark(t, fmt.Sprintf("on.%d", me))
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
					out := processes(t, n, hosts, "stopped", fmt.Sprint(victim, " ", in), "CCL_TEST_DIR="+t.TempDir())
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

// leftBehind is a rank of TestHostThatWasLeftBehind: the processes of host 1 are stopped until those of host 0 have given them up, gone
// on and ended.
func leftBehind(ctx context.Context, t *testing.T, _ string) {
	world := joined(ctx, t, &ccl.Options{PeerTimeout: stoppedPeer, Log: slog.New(slog.DiscardHandler)})
	me := world.Rank()
	mark(t, fmt.Sprintf("pid.%d", me))
	require.NoError(t, ccl.Barrier(ctx, world))
	if me >= 2 {
		others := pidsIn(t, os.Getenv("CCL_TEST_DIR"), 2)
		goOn := fmt.Sprintf("(while kill -0 %d || kill -0 %d; do sleep 0.05; done; kill -CONT %d) >/dev/null 2>&1 &", others[0], others[1], os.Getpid())
		require.NoError(t, exec.Command("sh", "-c", goOn).Run())
		stopHere(t)
	}
	var e *ccl.Error
	require.ErrorAs(t, callOn(ctx, world), &e)
	require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
	left, err := world.Shrink(ctx)
	if me < 2 {
		require.NoError(t, err)
		defer left.Close()
		require.NoError(t, ccl.Barrier(ctx, left))
		fmt.Printf("rank %d: goes on with %d\n", me, left.Size())
		return
	}
	for range 3 { // it stays so
		require.ErrorAs(t, err, &e)
		require.Equal(t, ccl.ErrRankLost, e.Code, "%v", e)
		require.Equal(t, me, e.Peer, "%v", e)
		_, err = world.Shrink(ctx)
	}
	fmt.Printf("rank %d: has been given up\n", me)
}

// All ranks of a host that was stopped until it was given up are out, also where the others have come to their end meanwhile, so that
// nobody is left who could say so to more than the host's first process.
func TestHostThatWasLeftBehind(t *testing.T) {
	t.Parallel()
	out := processes(t, 4, 2, "left behind", "", "CCL_TEST_DIR="+t.TempDir())
	for r, want := range []string{"goes on with 2", "goes on with 2", "has been given up", "has been given up"} {
		require.Contains(t, out, fmt.Sprintf("rank %d: %s\n", r, want))
	}
}

// pausedRank is a rank of TestPausedJobGoesOn.
func pausedRank(ctx context.Context, t *testing.T, in string) {
	c := joined(ctx, t, &ccl.Options{PeerTimeout: stoppedPeer})
	require.NoError(t, ccl.Barrier(ctx, c))
	me := c.Rank()
	mark(t, fmt.Sprintf("pid.%d", me))
	over := func() bool { return isMarked("over") }
	switch in {
	case "no call":
		require.Eventually(t, over, long, time.Millisecond, "the pause is over")
	case "a call":
		require.NoError(t, keepCalling(ctx, c, over))
	case "a message":
		// Each waits for the next, with a limit that is shorter than the pause, until it has seen that that is over.
		got := make([]int, 1)
		from := ccl.LinkTo(c, (me+1)%c.Size(), 0).Within(stoppedFor - 200*time.Millisecond).Recv(ccl.BufOf(got))
		for last := time.Now(); time.Since(last) < stoppedFor/2; time.Sleep(time.Millisecond) {
			last = time.Now()
		}
		time.Sleep(100 * time.Millisecond) // in which a limit that had ended would be found
		require.NoError(t, ccl.LinkTo(c, (me+c.Size()-1)%c.Size(), 0).Send(ccl.BufOf([]int{me})).Wait(ctx))
		require.NoError(t, from.Wait(ctx))
		require.Equal(t, (me+1)%c.Size(), got[0])
	case "Shrink":
		if me == 0 {
			require.Eventually(t, func() bool { return isMarked("pid.1") && isMarked("pid.2") && isMarked("pid.3") }, long, time.Millisecond, "all are there")
			c.Abort(errors.New("on purpose"))
		}
		<-c.Done()
		if me == c.Size()-1 { // the others wait in Shrink
			require.Eventually(t, over, long, time.Millisecond, "the pause is over")
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
		for _, in := range []string{"no call", "a call", "a message", "Shrink"} {
			if testing.Short() && (hosts != 2 || in != "a call") {
				continue
			}
			t.Run(fmt.Sprintf("in %s on %d hosts", in, hosts), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				over := make(chan struct{})
				go func() {
					defer close(over)
					pids := pidsIn(t, dir, n)
					time.Sleep(100 * time.Millisecond) // anywhere
					for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
						for _, pid := range pids {
							_ = syscall.Kill(pid, s)
						}
						time.Sleep(stoppedFor) // and long enough after it for a loss to be noticed
					}
					_ = os.WriteFile(filepath.Join(dir, "over"), nil, 0o600)
				}()
				out := processes(t, n, hosts, "paused", in, "CCL_TEST_DIR="+dir)
				<-over
				for r := range n {
					require.Contains(t, out, fmt.Sprintf("rank %d: all is well\n", r), out)
				}
			})
		}
	}
}

// endWhileStopped is a rank of TestEndWhileStopped.
func endWhileStopped(ctx context.Context, t *testing.T, _ string) {
	c := joined(ctx, t, &ccl.Options{PeerTimeout: stoppedPeer})
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
		if pids := pidsIn(t, dir, 2); len(pids) == 2 {
			_ = syscall.Kill(pids[1], syscall.SIGSTOP)
			for !isStopped(pids[1]) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			_ = syscall.Kill(pids[0], syscall.SIGKILL)
			time.Sleep(stoppedPeer * 3 / 4)
			_ = syscall.Kill(pids[1], syscall.SIGCONT)
		}
	}()
	out := processes(t, 2, 2, "end while stopped", "", "CCL_TEST_DIR="+dir)
	<-over
	require.Contains(t, out, fmt.Sprintf("rank 1: code %d peer 0 certain false\n", ccl.ErrRankLost), out)
}
