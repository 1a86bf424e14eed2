package plane

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/group"
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

	h, err := sharedHost(nil)
	require.NoError(t, err)
	off, err := h.Alloc(pulseBytes(2))
	require.NoError(t, err)
	boardOf(h).pulses.Store(off)
	j := EnterJob(t.Name(), time.Second)
	defer j.Leave()
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	s.Here.open(h)
	require.NoError(t, s.Here.showPulse(h))
	his := &s.Here.processes.pulses[1]
	his.pid.Store(uint64(starved.Pid))
	his.space.Store(proc.Namespace())
	his.beat.Store(7)
	check := func() (gone bool) {
		j.Time.Lived.Lap(time.Now()) // as the monitor: a time in which this process gets no turn does not count
		s.checkPulses(true)
		s.Job.mu.Lock()
		defer s.Job.mu.Unlock()
		return s.Here.processes.others[0].gone
	}
	for j.Time.Lived.Now() < 3*time.Second {
		require.False(t, check(), "lost after %v", j.Time.Lived.Now())
		time.Sleep(50 * time.Millisecond)
	}
	schedule(starved, unix.SCHED_NORMAL) // it takes a turn to stop
	require.NoError(t, starved.Signal(syscall.SIGSTOP))
	assert.Eventually(t, check, time.Minute, 50*time.Millisecond, "it is stopped")
	s.reset()
	s.Here.Host = PrivateHost()
}

// A process that is in two jobs has a death word in each: its other processes hear of a kill in both at once, and need no
// connection for it.
func TestEveryJobHasADeathWord(t *testing.T) {
	var sites []*Site
	for i := range 2 {
		h, err := sharedHost(nil)
		require.NoError(t, err)
		off, err := h.Alloc(pulseBytes(2))
		require.NoError(t, err)
		boardOf(h).pulses.Store(off)
		j := EnterJob(fmt.Sprint(t.Name(), i), time.Second)
		s := j.Site(0)
		s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
		s.Here.open(h)
		require.NoError(t, s.Here.showPulse(h))
		t.Cleanup(func() {
			s.reset()
			s.Here.Host = PrivateHost()
			j.Leave()
		})
		sites = append(sites, s)
	}
	if sites[0].Here.processes.pulse.death.Load() == 0 {
		t.Skip("hardware: this kernel keeps no robust list for us")
	}
	for i, s := range sites {
		p := &s.Here.processes
		require.NotZero(t, p.pulse.death.Load(), "job %d", i)
		p.pulses[1].death.Store(1) // the other process has its own
		require.True(t, s.Here.KernelTells(1), "job %d", i)
		require.True(t, s.Here.guard(), "job %d: this process is told of the other's end", i)
		require.True(t, s.Here.canIdle() || s.Here.Ends.Ringer.Load() == nil, "job %d", i)
	}
	sites[0].Here.hidePulse() // that it leaves one job does not matter to the other
	require.NotZero(t, sites[1].Here.processes.pulse.death.Load())
	require.True(t, sites[1].Here.guard())
}
