package watch

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// A process that gets no turn is not lost, however long it is silent; one that is stopped is.
func TestStarvedIsNotLost(t *testing.T) {
	if proc.ThreadsOf(os.Getpid()) == nil {
		t.Skip("hardware: the kernel has no scheduler statistics")
	}
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	only := unix.CPUSet{}
	for i := 0; only.Count() == 0; i++ {
		if allowed.IsSet(i) {
			only.Set(i)
		}
	}
	schedule := func(p *os.Process, policy uint32) {
		require.NoError(t, unix.SchedSetAttr(p.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy}, 0))
	}
	spin := func(policy uint32) *os.Process {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		require.NoError(t, unix.SchedSetaffinity(cmd.Process.Pid, &only))
		schedule(cmd.Process, policy)
		return cmd.Process
	}
	spin(unix.SCHED_NORMAL)
	starved := spin(unix.SCHED_IDLE) // runs when the other does not want to

	s := sharing(t, 2)
	*s.Job.Peer = time.Second
	his := &s.Processes.pulses[1]
	his.pid.Store(uint64(starved.Pid))
	his.space.Store(proc.Namespace())
	his.beat.Store(7)
	check := func() (gone bool) {
		s.Job.Lived.Lap(time.Now()) // as the monitor: a time in which this process gets no turn does not count
		_, losses, _ := s.Processes.Look(true)
		return len(losses) > 0
	}
	for s.Job.Lived.Now() < 3*time.Second {
		require.False(t, check(), "lost after %v", s.Job.Lived.Now())
		time.Sleep(50 * time.Millisecond)
	}
	schedule(starved, unix.SCHED_NORMAL) // it takes a turn to stop
	require.NoError(t, starved.Signal(syscall.SIGSTOP))
	assert.Eventually(t, check, time.Minute, 50*time.Millisecond, "it is stopped")
}

// A process that is in two jobs has a death word in each: its other processes hear of a kill in both at once, and need no
// connection for it.
func TestEveryJobHasADeathWord(t *testing.T) {
	hosts := []*Host{sharing(t, 2), sharing(t, 2)}
	if hosts[0].Processes.pulse.death.Load() == 0 {
		t.Skip("hardware: this kernel keeps no robust list for us")
	}
	for i, s := range hosts {
		p := &s.Processes
		require.NotZero(t, p.pulse.death.Load(), "job %d", i)
		p.pulses[1].death.Store(1) // the other process has its own
		require.True(t, p.KernelTells(1), "job %d", i)
		require.True(t, p.guard(), "job %d: this process is told of the other's end", i)
		require.True(t, s.CanIdle() || s.Ends.Ringer.Load() == nil, "job %d", i)
	}
	hosts[0].Processes.Hide() // that it leaves one job does not matter to the other
	require.NotZero(t, hosts[1].Processes.pulse.death.Load())
	require.True(t, hosts[1].Processes.guard())
}
