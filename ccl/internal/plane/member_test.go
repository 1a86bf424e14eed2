package plane

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
)

// A Member knows itself by its rank in the Comm, in the world, and on its host.
func TestMemberOfTwoHosts(t *testing.T) {
	world := group.MembersOf([]int{7, 5, 2, 3}) // ranks 1 and 3 are on the second host
	s := newSite(&Job{}, 0)
	s.Here.Host = PrivateHost()
	defer s.Here.Host.Close()
	var c Member
	c.Init(s, 11, world, algo.Placed([]int{0, 1, 0, 1}), 3, region.New(0, shm.Aligned(region.Bytes(2)), 2), Options{})
	require.Equal(t, []int{3, 4, 3, 1}, []int{c.Group.Rank(), c.Group.Size(), c.Group.World(3), c.Share.Me})
	require.Equal(t, []int{1, 3}, []int{c.Group.LocalRank(0), c.Group.LocalRank(1)})
	require.Equal(t, uint64(11), c.Group.ID())
	require.Equal(t, "comm", c.Standing.Label.Name())
	require.Equal(t, []shm.Place{shm.PlaceAt(0, region.Bytes(2))}, c.Share.views)
	require.Nil(t, c.Fate.Failure())
	c.Standing.Label.SetName("tp")
	require.Equal(t, "tp", c.Standing.Label.Name())
}

// A rank that leaves its job after a failure waits for what is left of its time, and never for longer than all of it, though a
// clock may have been set back since the failure.
func TestStay(t *testing.T) {
	const since = 7 * time.Second
	for _, tc := range []struct{ passed, left time.Duration }{
		{0, lingerFor}, {lingerFor / 4, 3 * lingerFor / 4}, {lingerFor, 0}, {-time.Hour, lingerFor},
	} {
		require.Equal(t, tc.left, stay{lingerFor, since}.left(since+tc.passed), tc.passed)
	}
	require.Negative(t, stay{lingerFor, since}.left(since+time.Hour))
}

// The Close of a failed Comm waits only where the rank leaves its job with it, also if the last Comm has not failed, and whatever
// Comms other ranks of the process have, on one host or several. Where the rank stood is told before the Comm is closed, and known
// until it is reported.
func TestOnlyTheLastCommLingers(t *testing.T) {
	for _, tc := range []struct {
		hosts int
		limit time.Duration
	}{{1, lingerHere}, {2, lingerFor}} {
		t.Run(fmt.Sprintf("hosts %d", tc.hosts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { onlyTheLastCommLingers(t, tc.hosts, tc.limit) })
		})
	}
}

func onlyTheLastCommLingers(t *testing.T, hosts int, limit time.Duration) {
	const long = time.Hour
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host, s.Here.Procs = algo.Blocks(hosts, 2), PrivateHost(), []int{0, 0}
	comm := func(id uint64, rank int) *Member { return memberOf(t, s, id, rank, Options{}) }
	part, quiet := comm(2, 0), comm(3, 0)
	comm(1, 0)
	comm(1, 1)
	if hosts == 1 {
		quiet.FailHere(call.NewFault(call.Canceled, 1, "nothing that keeps anybody"))
		require.Zero(t, j.Life.stay)
	}
	part.FailHere(call.NewFault(call.RankLost, 1, "killed"))
	require.Equal(t, limit, j.Life.stay.limit)
	_, told := j.Statuses.At(2, 0)
	require.False(t, told)
	j.Life.stay.limit = long // a wait would be noticed
	j.broken.at = 1
	begun := time.Now()
	part.Linger()
	require.Zero(t, time.Since(begun))
	where, told := j.Statuses.At(2, 0)
	require.True(t, told)
	require.True(t, where.Failed)
	j.Remove(part)
	_, told = j.Statuses.At(2, 0)
	require.True(t, told, "it is to be reported yet")
	j.reportSnapshot(j.Clock() + int64(2*snapshotAfter))
	_, told = j.Statuses.At(2, 0)
	require.False(t, told)
	quiet.Linger()
	require.Equal(t, map[int]int{0: 1, 1: 1}, j.Life.open)
	left, last := j.partFrom(0) // the world's, which has not failed
	require.True(t, last)
	require.Equal(t, long, left)
}
