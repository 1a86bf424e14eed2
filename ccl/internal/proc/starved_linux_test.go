package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel tells a process that others keep from running from one that is stopped.
func TestThreadsOf(t *testing.T) {
	if ThreadsOf(os.Getpid()) == nil {
		t.Skip("hardware: the kernel has no scheduler statistics")
	}
	require.NotZero(t, Namespace())
	var allowed, only unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	for i := 0; only.Count() == 0; i++ {
		if allowed.IsSet(i) {
			only.Set(i)
		}
	}
	spin := func() *os.Process {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		require.NoError(t, unix.SchedSetaffinity(cmd.Process.Pid, &only))
		return cmd.Process
	}
	one := spin()
	spin()
	before := ThreadsOf(one.Pid)
	require.Eventually(t, func() bool {
		return ThreadsOf(one.Pid).Starved(before, time.Minute) > 200*time.Millisecond
	}, time.Minute, 10*time.Millisecond, "two share a processor")
	require.NoError(t, one.Signal(syscall.SIGSTOP))
	stopped := func() bool { // it takes its last turn, to stop; and then the kernel may leave it among those that wait, up to its next turn
		now := ThreadsOf(one.Pid)
		is := !now[one.Pid].Ready && now[one.Pid].Waited == before[one.Pid].Waited
		before = now
		return is
	}
	require.Eventually(t, stopped, time.Minute, 50*time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	assert.Zero(t, ThreadsOf(one.Pid).Starved(before, time.Minute))

	require.NoError(t, one.Kill())
	_, err := one.Wait()
	require.NoError(t, err)
	assert.Nil(t, ThreadsOf(one.Pid), "it has ended")
}
