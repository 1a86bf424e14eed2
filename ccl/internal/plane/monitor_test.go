package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// A look at all ranks says whether there is more to look after, and tells them that others wait.
func TestCheckMembers(t *testing.T) {
	all := ranks(t, 2, Options{})
	j := all[0].Site.Job
	waits := func(now int64) bool {
		waits, fails := j.checkMembers(now)
		require.False(t, fails)
		return waits
	}
	require.False(t, waits(10))
	all[1].Standing.asked.Store(true)
	require.True(t, waits(20))
	require.EqualValues(t, 20, all[1].Standing.note.heardAt)
	require.Zero(t, all[0].Standing.note.heardAt)
	require.False(t, all[1].Standing.asked.Load())
	require.True(t, waits(30), "it publishes what changes")
	require.EqualValues(t, 20, all[1].Standing.note.heardAt)
	long := int64(follow + publishEvery + 2*perRank)
	require.False(t, waits(20+long), "nobody has waited for long")
	require.Equal(t, []*Member{nil, nil}, j.watch.members, "it holds no rank")
	all[0].Fate.proposal.Store(&call.Fault{Code: call.RankLost, Peer: 1})
	_, fails := j.checkMembers(30 + long)
	require.True(t, fails, "that is not decided")
}

// The monitor looks after a call that sleeps, without any call, until the job ends.
func TestMonitor(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	c.Site.Job.StartMonitor()
	enter(c, call.Barrier)
	sleeps(c, call.Barrier, 1, c.Site.Job.Clock())
	c.Site.Job.Time.Coarse.WakeMonitor()
	require.Eventually(t, func() bool {
		s := c.Site.Job.Statuses.Of(group.WorldID)
		return len(s) > 0 && s[0].Rank == 0 && s[0].Doing == status.Waits
	}, 20*time.Second, 5*time.Millisecond, "it does not say that it waits")
	require.EqualValues(t, 1, c.Site.Job.Statuses.Of(group.WorldID)[0].For)
	c.EndSleep()
	c.Fail(&call.Fault{Code: call.Aborted, Peer: 0})
	require.Eventually(t, func() bool { return c.Site.Job.Statuses.Of(group.WorldID)[0].Failed }, 20*time.Second, 5*time.Millisecond)
}
