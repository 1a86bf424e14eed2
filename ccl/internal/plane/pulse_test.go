package plane

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/region"
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

// theOther is the process beside s, as it has the memory of the host.
func theOther(t *testing.T, s *Site) *watch.Host {
	t.Helper()
	of := &newSite(&Job{}, 0).Here
	of.Job.World.Topo, of.Procs, of.Mine = s.Job.World.Topo, s.Here.Procs, 1
	require.NoError(t, of.TakeHost(s.Here.Host))
	t.Cleanup(of.Processes.Hide)
	return of
}

// readBoard is the monitor's look at the board.
func readBoard(s *Site) {
	s.Here.Log.ReadBoard(func(st status.Status) { s.receiveStatus(&st, nil, false) })
}

// A process that the others of its host have given up finds that in its pulse, though the log of the host has gone on without it: it
// is lost itself before it believes that they have ended.
func TestOutIsFoundInThePulse(t *testing.T) {
	s := besideAnother(t)
	j, c := s.Job, memberOf(t, s, group.WorldID, 0, Options{})
	s.Here.Processes.NoteOut(0) // as the others do
	theOther(t, s).Processes.Hide()
	s.checkPulses(false)
	require.True(t, j.IsLost(0))
	require.False(t, j.HasEnded(0))
	f := c.Fate.Cause()
	require.NotNil(t, f)
	require.Equal(t, []any{call.RankLost, 0}, []any{f.Code, f.Peer})
	require.ErrorContains(t, f.Err, "the others have given this rank up")
	require.Empty(t, s.Here.Processes.Outside(), "it knows")

	other := theOther(t, s)
	for _, w := range []int{-1, 3, 1 << 30} { // as another host may say
		s.Here.Processes.NoteOut(w)
	}
	require.Empty(t, other.Processes.Outside())
	e := event.New(0, call.RankLost, 1, 0, 0, errors.New("its process has been silent for 5s"))
	s.Job.Order.Lock()
	s.believe(&e)
	s.Job.Order.Unlock()
	require.Equal(t, []int{1}, other.Processes.Outside())
}

// The slices of a process that has ended count until no Comm can be in a call with one of its ranks.
func TestHasParted(t *testing.T) {
	all := ranks(t, 3, Options{})
	j := all[0].Site.Job
	require.False(t, j.hasParted([]int{1, 2}), "they are there")
	j.World.Lose(1, true)
	require.False(t, j.hasParted([]int{1, 2}), "rank 2 is there")
	j.World.Lose(2, true)
	for _, c := range all {
		require.False(t, j.hasParted([]int{1, 2}), "a call may be under way")
		c.FailHere(call.NewFault(call.RankLost, 1, "on purpose"))
	}
	require.True(t, j.hasParted([]int{1, 2}))
}

// The end of a process beside this one is the loss of its ranks, which is certain, unless the others have given this one up
// before. A Comm that it had has failed: whoever leaves that waits for others, and looks no more.
func TestLostProcess(t *testing.T) {
	for _, out := range []bool{false, true} {
		t.Run(fmt.Sprint("given up ", out), func(t *testing.T) {
			s := besideAnother(t)
			c := memberOf(t, s, group.WorldID, 0, Options{})
			if out {
				s.Job.World.Lose(0, false)
			}
			s.LostProcess(1, watch.ErrEnded)
			require.Equal(t, !out, s.Job.HasEnded(1))
			require.Equal(t, !out, c.Fate.Cause() != nil)
			l := Leave(c, false, func(*shm.Host, *region.Region) []shm.Place { return nil })
			require.False(t, l.Last())
			require.EqualValues(t, region.ListedOut, c.Share.Local.Out(0).Load(), "one of its ranks is lost")
			require.False(t, c.Share.Look(func() {}))
		})
	}
}
