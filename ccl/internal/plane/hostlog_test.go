package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// besideAnother is this process on a host with another one, of rank 1.
func besideAnother(t *testing.T) *Site {
	t.Helper()
	j := EnterJob(t.Name(), 0)
	t.Cleanup(j.Leave)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	if err := s.Here.MakeHost(true, nil); err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	return s
}

// What the log has no room for is kept until the other process has read far enough, and goes in its order.
func TestLogWaitsForReaders(t *testing.T) {
	s := besideAnother(t)
	log := &boardOf(s.Here.Host).log
	post := func(n int) {
		for range n {
			s.Here.appendLog(s.Here.Host, event.New(uint64(99+log.Claimed())+uint64(len(s.Here.log.kept.events)), call.Aborted, 0, 0, 0, nil))
		}
	}
	post(shm.RingSlots)
	require.EqualValues(t, shm.RingSlots, log.Claimed())
	require.True(t, s.Here.appendKept())
	post(3)
	require.EqualValues(t, shm.RingSlots, log.Claimed())
	require.False(t, s.Here.appendKept())
	s.Scan()
	require.EqualValues(t, shm.RingSlots, s.Here.processes.pulse.read.Load(), "this process has read all")
	require.False(t, s.Here.appendKept(), "the other has not")
	s.Here.processes.pulses[1].read.Store(2)
	require.False(t, s.Here.appendKept())
	require.EqualValues(t, shm.RingSlots+2, log.Claimed())
	require.Len(t, s.Here.log.kept.events, 1)
	s.Here.processes.pulses[1].left.Store(1)
	require.True(t, s.Here.appendKept(), "it has left")
	for i := range uint64(shm.RingSlots) {
		e, ok, _ := log.Read(i+3, nil)
		require.True(t, ok)
		require.Equal(t, 99+i+3, e.Comm, "in order")
	}
}

// A process that is given up, dead, has left or is known to be lost neither reads nor writes.
func TestIsOut(t *testing.T) {
	for name, change := range map[string]func(s *Site){
		"it is there":         func(*Site) {},
		"it was given up":     func(s *Site) { s.Here.processes.others[0].gone = true },
		"it has left":         func(s *Site) { s.Here.processes.pulses[1].left.Store(1) },
		"it has died":         func(s *Site) { s.Here.processes.pulses[1].death.Store(proc.OwnerDied) },
		"the job has lost it": func(s *Site) { s.Job.World.Lose(1, false) },
	} {
		t.Run(name, func(t *testing.T) {
			s := besideAnother(t)
			s.Here.log.scanned.Store(shm.RingSlots)
			change(s)
			out := name != "it is there"
			require.Equal(t, out, s.Here.writesNoMore(1))
			require.Equal(t, out, s.Here.hasRead(shm.RingSlots), "nobody else has to read")
			require.False(t, s.Here.writesNoMore(0), "this process itself")
			require.True(t, s.Here.hasRead(shm.RingSlots-1), "a slot that was free")
			s.Job.World.Ranks = gone.Ranks{Topo: s.Job.World.Topo}
		})
	}
}

// This process tells others how far it has read, and knows whether there is more.
func TestHasUnread(t *testing.T) {
	s := besideAnother(t)
	require.False(t, s.Here.hasUnread(idles))
	e := event.New(99, call.Aborted, 0, 0, 0, nil)
	require.True(t, boardOf(s.Here.Host).log.Append(&e, 1, nil))
	require.True(t, s.Here.hasUnread(idles))
	require.True(t, s.Here.hasUnread(dozes))
	s.Scan()
	require.False(t, s.Here.hasUnread(idles))
	require.EqualValues(t, 1, s.Here.processes.pulse.read.Load())
	require.True(t, s.Job.World.Events.IsDecided(&e), "it was believed")
	boardOf(s.Here.Host).status.Append(&status.Status{Size: 2, Rank: 1}, 1, nil)
	require.True(t, s.Here.hasUnread(idles))
	require.False(t, s.Here.hasUnread(dozes), "that can wait")
}
