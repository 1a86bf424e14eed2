//go:build unix

package boot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func init() {
	roles["rank2killed"] = func(rank string) int {
		if rank == "2" {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return rest()
	}
	roles["stubborn"] = func(rank string) int {
		if rank == "0" {
			return 5
		}
		signal.Ignore(syscall.SIGTERM)
		return rest()
	}
	roles["usr1"] = func(rank string) int {
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGUSR1)
		fmt.Println("ready")
		fmt.Println(<-got)
		return 0
	}
	roles["launch"] = func(string) int { // Spawn in a process of its own
		self, _ := os.Executable()
		err := Spawn(context.Background(), Command{
			N: 3, Path: self, Env: append(os.Environ(), "BOOT_TEST_ROLE="+os.Getenv("BOOT_TEST_NEXT")),
			Stdout: os.Stdout, Stderr: os.Stderr,
		})
		fmt.Println(err)
		return 0
	}
	roles["pid"] = func(string) int {
		fmt.Printf("pid %d\n", os.Getpid())
		return rest()
	}
	roles["sleeper"] = func(string) int { // as a wrapped program: Linux would end its shell alone
		c := exec.Command("sh", "-c", "sleep 1000; true")
		c.Stdout = os.Stdout
		c.SysProcAttr = &syscall.SysProcAttr{}
		if err := c.Start(); err != nil {
			return 1
		}
		for {
			out, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid))
			if err != nil {
				return 1
			}
			if pid := strings.TrimSpace(string(out)); pid != "" {
				fmt.Println("pid", pid)
				return rest()
			}
			time.Sleep(time.Millisecond)
		}
	}
	roles["grandchild"] = func(rank string) int {
		c := exec.Command("sleep", "1000") // which would hold the output, too
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return 1
		}
		fmt.Printf("pid %d\n", c.Process.Pid)
		return 0
	}
}

func TestSpawnKilledRank(t *testing.T) {
	noLeaks(t)
	c, _ := troupe(t, 4, "rank2killed")
	err := Spawn(within(t, long), c)
	require.Equal(t, &ExitError{Rank: 2, Code: -1, Signal: syscall.SIGKILL, Failed: 1, Stopped: 3}, err)
	require.EqualError(t, err, "rank 2 was ended by a signal: killed")
}

func TestSpawnStubborn(t *testing.T) {
	c, _ := troupe(t, 3, "stubborn")
	c.Grace = 100 * time.Millisecond
	require.Equal(t, &ExitError{Rank: 0, Code: 5, Failed: 1, Stopped: 2}, Spawn(within(t, long), c))
}

// until collects what is written to it and closes ready once it has seen count of what.
type until struct {
	mu    sync.Mutex
	text  bytes.Buffer
	what  string
	count int
	ready chan struct{}
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := strings.Count(u.text.String(), u.what) >= u.count
	u.text.Write(p)
	if !before && strings.Count(u.text.String(), u.what) >= u.count {
		close(u.ready)
	}
	return len(p), nil
}

func (u *until) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text.String()
}

// launch starts Spawn in a process of its own, with three ranks of role, and waits
// until each has written what.
func launch(t *testing.T, role, what string) (*exec.Cmd, *until) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	out := &until{what: what, count: 3, ready: make(chan struct{})}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "BOOT_TEST_ROLE=launch", "BOOT_TEST_NEXT="+role)
	cmd.Stdout, cmd.WaitDelay = out, time.Second
	require.NoError(t, cmd.Start())
	select {
	case <-out.ready:
	case <-time.After(long):
		cmd.Process.Kill()
		t.Fatalf("no three times %q in: %s", what, out)
	}
	return cmd, out
}

func TestSpawnForwards(t *testing.T) {
	for _, tc := range []struct {
		sig  syscall.Signal
		role string
		want string
	}{
		{syscall.SIGINT, "wait", "was ended by a signal: interrupt"},
		{syscall.SIGTERM, "wait", "was ended by a signal: terminated"},
		{syscall.SIGHUP, "wait", "was ended by a signal: hangup"},
		{syscall.SIGUSR1, "usr1", "user defined signal 1\nuser defined signal 1\nuser defined signal 1\n<nil>\n"},
	} {
		ignored := signal.Ignored(tc.sig) || tc.sig == syscall.SIGINT && interruptIsIgnored
		if ignored { // as SIGHUP is under nohup: the ranks inherit that
			continue
		}
		what := map[string]string{"wait": "here", "usr1": "ready"}[tc.role]
		cmd, out := launch(t, tc.role, what)
		require.NoError(t, cmd.Process.Signal(tc.sig))
		require.NoError(t, cmd.Wait())
		require.Contains(t, out.String(), tc.want)
	}
}

// pids are the processes that out names.
func pids(t *testing.T, out string) []int {
	var all []int
	for line := range strings.Lines(out) {
		var pid int
		if _, err := fmt.Sscanf(line, "pid %d", &pid); err == nil {
			all = append(all, pid)
		}
	}
	require.Len(t, all, 3)
	return all
}

// requireGone waits until none of the processes is there.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for end := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end), "process %d is still there", pid)
		}
	}
}

// alive reports whether a process is there, and no zombie that nobody here reaps.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestSpawnLeavesNobody(t *testing.T) {
	cmd, out := launch(t, "grandchild", "pid ")
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), "<nil>")
	requireGone(t, pids(t, out.String()))
}

// lateWriter takes what is written when it is told to.
type lateWriter struct {
	bytes.Buffer
	now <-chan time.Time
}

func (l *lateWriter) Write(p []byte) (int, error) {
	if l.now != nil {
		<-l.now
		l.now = nil
	}
	return l.Buffer.Write(p)
}

// What ranks have written is not lost where it is taken long after their end.
func TestSpawnLateOutput(t *testing.T) {
	noLeaks(t)
	w := &lateWriter{now: time.After(100 * time.Millisecond)}
	require.NoError(t, Spawn(within(t, long), Command{N: 2, Path: "/bin/sh", Args: []string{"-c", "echo one; sleep .05; echo two; sleep 5 &"},
		Env: os.Environ(), Grace: time.Millisecond, Stdout: w}))
	require.Equal(t, []string{"one\n", "one\n", "two\n", "two\n"}, sortedLines(&w.Buffer))
}
