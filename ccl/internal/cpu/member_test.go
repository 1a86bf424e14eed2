package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
)

// A Member knows itself by its rank in the Comm, in the world, and on its host.
func TestMemberOfTwoHosts(t *testing.T) {
	world := membersOf([]int{7, 5, 2, 3}) // ranks 1 and 3 are on the second host
	s := &site{job: &job{}, host: privateHost()}
	defer s.host.Close()
	var c Member
	c.init(s, 11, world, algo.Placed([]int{0, 1, 0, 1}), 3, newRegion(0, shm.Aligned(regionBytes(2)), 2), Options{})
	require.Equal(t, []int{3, 4, 3, 1}, []int{c.Rank(), c.Size(), c.World(3), c.me})
	require.Equal(t, []int{1, 3}, []int{c.localRank(0), c.localRank(1)})
	require.Equal(t, uint64(11), c.ID())
	require.Equal(t, "comm", c.Name())
	require.Equal(t, []shm.Place{shm.PlaceAt(0, regionBytes(2))}, c.views)
	require.Nil(t, c.Failure())
	c.SetName("tp")
	require.Equal(t, "tp", c.Name())
}
