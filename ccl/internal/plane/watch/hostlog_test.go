package watch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// scan reads the log, and returns what has come.
func scan(s *Host) (all []event.Event) {
	if s.Log.HasNew() {
		s.Log.Read(func(e event.Event) { all = append(all, e) })
	}
	return all
}

// What the log has no room for is kept until the other process has read far enough, and goes in its order.
func TestLogWaitsForReaders(t *testing.T) {
	s := sharing(t, 2)
	log := &BoardOf(s.Host).Log
	post := func(n int) {
		for range n {
			require.True(t, s.Log.Append(event.New(99+log.Claimed()+uint64(len(s.Log.kept.events)), call.Aborted, 0, 0, 0, nil)))
		}
	}
	post(shm.RingSlots)
	require.EqualValues(t, shm.RingSlots, log.Claimed())
	require.True(t, s.Log.AppendKept())
	post(3)
	require.EqualValues(t, shm.RingSlots, log.Claimed())
	require.False(t, s.Log.AppendKept())
	scan(s)
	require.EqualValues(t, shm.RingSlots, s.Processes.pulse.read.Load(), "this process has read all")
	require.False(t, s.Log.AppendKept(), "the other has not")
	s.Processes.pulses[1].read.Store(2)
	require.False(t, s.Log.AppendKept())
	require.EqualValues(t, shm.RingSlots+2, log.Claimed())
	require.Len(t, s.Log.kept.events, 1)
	s.Processes.pulses[1].left.Store(1)
	require.True(t, s.Log.AppendKept(), "it has left")
	for i := range uint64(shm.RingSlots) {
		e, ok, _ := log.Read(i+3, nil)
		require.True(t, ok)
		require.Equal(t, 99+i+3, e.Comm, "in order")
	}
}

// A process that is given up, dead, has left or is known to be lost neither reads nor writes.
func TestIsOut(t *testing.T) {
	for name, change := range map[string]func(s *Host){
		"it is there":         func(*Host) {},
		"it was given up":     func(s *Host) { s.Processes.others[0].gone = true },
		"it has left":         func(s *Host) { s.Processes.pulses[1].left.Store(1) },
		"it has died":         func(s *Host) { s.Processes.pulses[1].death.Store(proc.OwnerDied) },
		"the job has lost it": func(s *Host) { s.Job.World.Lose(1, false) },
	} {
		t.Run(name, func(t *testing.T) {
			s := sharing(t, 2)
			s.Log.scanned.Store(shm.RingSlots)
			change(s)
			out := name != "it is there"
			require.Equal(t, out, s.Processes.writesNoMore(1))
			require.Equal(t, out, s.Log.hasRead(shm.RingSlots), "nobody else has to read")
			require.False(t, s.Processes.writesNoMore(0), "this process itself")
			require.True(t, s.Log.hasRead(shm.RingSlots-1), "a slot that was free")
		})
	}
}

// This process tells others how far it has read, and knows whether there is more.
func TestHasUnread(t *testing.T) {
	s := sharing(t, 2)
	require.False(t, s.Log.HasUnread(Idles))
	e := event.New(99, call.Aborted, 0, 0, 0, nil)
	require.True(t, BoardOf(s.Host).Log.Append(&e, 1, nil))
	require.True(t, s.Log.HasUnread(Idles))
	require.True(t, s.Log.HasUnread(Dozes))
	all := scan(s)
	require.Len(t, all, 1)
	require.EqualValues(t, 99, all[0].Comm)
	require.False(t, s.Log.HasUnread(Idles))
	require.EqualValues(t, 1, s.Processes.pulse.read.Load())
	BoardOf(s.Host).Status.Append(&status.Status{Size: 2, Rank: 1}, 1, nil)
	require.True(t, s.Log.HasUnread(Idles))
	require.False(t, s.Log.HasUnread(Dozes), "that can wait")
}
