package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// A Close after a failure waits for what is left of its time, and never for longer than all of it, though a clock may have
// been set back since the failure.
func TestRemaining(t *testing.T) {
	for _, tc := range []struct{ passed, left time.Duration }{
		{0, lingerFor}, {lingerFor / 4, 3 * lingerFor / 4}, {lingerFor, 0}, {-time.Hour, lingerFor},
	} {
		require.Equal(t, tc.left, remaining(lingerFor, tc.passed), tc.passed)
	}
	require.Negative(t, remaining(lingerFor, time.Hour))
}
