package join

import (
	"context"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// serving is a host with a rank of this process, which serves its memory, and one of another.
func serving(t *testing.T, silence time.Duration) (s *plane.Site, key []byte) {
	t.Helper()
	j := plane.EnterJob(t.Name(), silence)
	t.Cleanup(func() {
		s.Here.Host = plane.PrivateHost()
		j.Leave()
	})
	s = j.Site(0)
	s.Job.World.Topo, s.Here.Procs = group.Topology([]int{0, 0}, 1), []int{0, 1}
	require.NoError(t, s.Here.MakeHost(true, nil))
	key = []byte(t.Name())
	require.NoError(t, serveMemory(s, key, auth.ByKernel()))
	return s, key
}

// knock asks for the memory as rank 1, by that proof, and leaves what it gets.
func knock(t *testing.T, key, by []byte) error {
	t.Helper()
	c, err := dialServer(t.Context(), serverName(key))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = c.Write(append([]byte{1, 0, 0, 0}, by...))
	require.NoError(t, err)
	fds, err := shm.RecvFDs(c, proof(key, "answers", 1), 2)
	for _, fd := range fds {
		unix.Close(fd)
	}
	return err
}

// A process that has taken the memory and says nothing more does not hold up a try that is given up.
func TestGiveUpWaitsForNoParting(t *testing.T) {
	s, key := serving(t, time.Hour)
	require.NoError(t, knock(t, key, proof(key, "knocks", 1)))

	over := make(chan struct{})
	go func() {
		plane.DropSites(s.Job)
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second): // it would wait for an hour
		require.Fail(t, "giveUp does not return")
	}
}

// Only a process that can prove that it belongs to the job gets the memory.
func TestServerTurnsStrangersAway(t *testing.T) {
	s, key := serving(t, 0)
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
			require.Equal(t, tc.served, knock(t, key, proof(tc.key, tc.role, tc.rank)) == nil)
		})
	}
	plane.DropSites(s.Job)
	_, err := dialServer(t.Context(), serverName(key))
	require.Error(t, err, "nobody serves what is given up")
}

// The time for sharing leaves half of the caller's time to go on without, and is a minute at most.
func TestShareLimit(t *testing.T) {
	for _, limited := range []func(context.Context, time.Duration) (context.Context, context.CancelFunc){context.WithTimeout, lived.Within} {
		ctx, cancel := limited(t.Context(), 20*time.Second)
		defer cancel()
		require.InDelta(t, 10*time.Second, shareLimit(ctx), float64(time.Second))
	}
	require.Equal(t, time.Minute, shareLimit(t.Context()))
}
