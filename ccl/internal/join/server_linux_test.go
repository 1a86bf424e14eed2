package join

import (
	"context"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process that has taken the memory and says nothing more does not hold up a try that is given up.
func TestGiveUpWaitsForNoParting(t *testing.T) {
	j := plane.EnterJob(t.Name(), time.Hour)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	require.NoError(t, s.Here.MakeHost(true, nil))
	key := []byte(t.Name())
	require.NoError(t, serveMemory(s, key, nil))
	c, err := dialServer(t.Context(), serverName(key), time.Now().Add(10*time.Second))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(append([]byte{1, 0, 0, 0}, proof(key, "knocks", 1)...))
	require.NoError(t, err)
	fds, err := shm.RecvFDs(c, proof(key, "answers", 1), 2)
	require.NoError(t, err)
	for _, fd := range fds {
		unix.Close(fd)
	}
	over := make(chan struct{})
	go func() {
		s.Reset()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second): // it would wait for an hour
		require.Fail(t, "giveUp does not return")
	}
	s.Here.Host = plane.PrivateHost()
	j.Leave()
}

// Only a process that can prove that it belongs to the job gets the memory.
func TestServerTurnsStrangersAway(t *testing.T) {
	j := plane.EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	require.NoError(t, s.Here.MakeHost(true, nil))
	defer j.Leave()
	key := []byte(t.Name())
	require.NoError(t, serveMemory(s, key, nil))
	for _, tc := range []struct {
		name   string
		key    []byte
		role   string
		rank   uint32 // that it proves to be
		served bool
	}{
		{"a process of the job", key, "knocks", 1, true},
		{"one that knows another key", []byte("other"), "knocks", 1, false},
		{"one that repeats what the server says", key, "answers", 1, false},
		{"one that proves to be another rank", key, "knocks", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := dialServer(t.Context(), serverName(key), time.Now().Add(10*time.Second))
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Write(append([]byte{1, 0, 0, 0}, proof(tc.key, tc.role, tc.rank)...))
			require.NoError(t, err)
			fds, err := shm.RecvFDs(c, proof(key, "answers", 1), 2)
			if !tc.served {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			for _, fd := range fds {
				unix.Close(fd)
			}
		})
	}
	s.Reset()
	_, err := dialServer(t.Context(), serverName(key), time.Now())
	require.Error(t, err, "nobody serves what is given up")
	s.Here.Host = plane.PrivateHost()
}

// The time for sharing leaves half of the caller's time to go on without, and is a minute at most.
func TestShareDeadline(t *testing.T) {
	at := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), at.Add(20*time.Second))
	defer cancel()
	require.WithinDuration(t, at.Add(10*time.Second), shareDeadline(ctx), time.Second)
	require.WithinDuration(t, at.Add(time.Minute), shareDeadline(t.Context()), time.Second)
}
