package boot

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func init() {
	roles["wishes"] = func(string) int {
		got := make(chan os.Signal, 8)
		signal.Notify(got, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
		fmt.Println("pid", os.Getpid())
		for sig := range got {
			fmt.Println(sig)
		}
		return 0
	}
}

// stateOf is the state of a process, as /proc has it: T if it is stopped.
func stateOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(after, " ")
	return state
}

// What somebody asks a launcher for the ranks hear: SIGUSR1, SIGUSR2, and to stop and go on, as a shell does.
func TestSpawnPassesWishesOn(t *testing.T) {
	cmd := exec.CommandContext(within(t, long), "/proc/self/exe")
	cmd.Env = append(os.Environ(), "BOOT_TEST_ROLE=launch", "BOOT_TEST_NEXT=wishes")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(like string) (pids []int) { // of each of the three ranks
		for range 3 {
			require.True(t, lines.Scan(), "waiting for %q", like)
			require.True(t, strings.HasPrefix(lines.Text(), like), lines.Text())
			var pid int
			fmt.Sscanf(lines.Text(), "pid %d", &pid)
			pids = append(pids, pid)
		}
		return pids
	}
	ranks := next("pid ")
	for sig, text := range map[syscall.Signal]string{syscall.SIGUSR1: "user defined signal 1", syscall.SIGUSR2: "user defined signal 2"} {
		require.NoError(t, cmd.Process.Signal(sig))
		next(text)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTSTP))
	for _, pid := range append(ranks, cmd.Process.Pid) {
		require.Eventually(t, func() bool { return stateOf(pid) == "T" }, long, time.Millisecond)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	next("continued")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	for _, pid := range ranks {
		require.Empty(t, stateOf(pid))
	}
}
