package cpu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

func TestStageChunk(t *testing.T) {
	for _, tc := range []struct{ ranks, want int }{
		{1, 128 << 10}, {2, 128 << 10}, {32, 128 << 10}, {33, 124 << 10}, {64, 64 << 10}, {1024, 16 << 10}, {5000, 80 << 10},
	} {
		assert.Equal(t, tc.want, tuning.StageChunk(tc.ranks), "%d ranks", tc.ranks)
	}
}

// Who sees why a Comm has failed leaves its call, and waits for those who write into its memory. So the word that
// keeps others from beginning to write must be there before.
func TestAbortWordComesBeforeTheCause(t *testing.T) {
	j := plane.EnterJob("the order of failing", 0)
	s := j.Site(0)
	s.Job.World.Topo = group.Topology([]int{0}, 1)
	for range 5000 {
		s.Here.Host = plane.PrivateHost()
		off, err := s.Here.Host.Alloc(region.Bytes(1))
		require.NoError(t, err)
		c, err := newComm(s, group.WorldID, group.MembersOf([]int{0}), s.Job.World.Topo, 0, off, plane.Options{})
		require.NoError(t, err)
		word := make(chan uint64)
		go func() {
			for c.Failure() == nil {
				runtime.Gosched()
			}
			word <- c.rank.Share.Local.Abort().Load()
		}()
		require.True(t, c.rank.FailHere(call.NewFault(call.Aborted, 0, "on purpose")))
		require.NotZero(t, <-word, "a rank may still begin to write into this one's memory")
		j.Remove(&c.rank)
	}
	j.Leave()
}
