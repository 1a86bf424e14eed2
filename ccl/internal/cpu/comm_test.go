package cpu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

func TestMembers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		world  []int
		list   bool  // a list is needed
		others []int // no members
	}{
		{"none", nil, false, []int{1, 2}},
		{"one", []int{5}, false, []int{0, 4, 6}},
		{"row", []int{4, 5, 6, 7}, false, []int{0, 3, 8}},
		{"column", []int{1, 5, 9}, false, []int{0, 2, 4, 13, -3}},
		{"backwards", []int{7, 5, 3}, false, []int{9, 6, 4, 1}},
		{"irregular", []int{2, 3, 7}, true, []int{0, 1, 4, 5, 6, 8}},
		{"shuffled", []int{2, 0, 1}, true, []int{3, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := plane.MembersOf(tc.world)
			assert.Equal(t, tc.list, m.List != nil)
			for r, w := range tc.world {
				assert.Equal(t, w, m.World(r))
				assert.Equal(t, r, m.Rank(w, len(tc.world)))
			}
			for _, w := range tc.others {
				assert.Equal(t, -1, m.Rank(w, len(tc.world)), "%d", w)
			}
		})
	}
}

func TestStageChunk(t *testing.T) {
	for _, tc := range []struct{ ranks, want int }{
		{1, 128 << 10}, {2, 128 << 10}, {32, 128 << 10}, {33, 124 << 10}, {64, 64 << 10}, {1024, 8 << 10}, {5000, 40 << 10},
	} {
		assert.Equal(t, tc.want, tuning.StageChunk(tc.ranks), "%d ranks", tc.ranks)
	}
}

// Who sees why a Comm has failed leaves its call, and waits for those who write into its memory. So the word that
// keeps others from beginning to write must be there before.
func TestAbortWordComesBeforeTheCause(t *testing.T) {
	j := plane.EnterJob("the order of failing", 0)
	s := j.Site(0)
	s.Job.World.Topo = plane.Topology([]int{0}, 1)
	for range 5000 {
		s.Here.Host = plane.PrivateHost()
		off, err := s.Here.Host.Alloc(region.Bytes(1))
		require.NoError(t, err)
		c, err := newComm(s, plane.WorldID, plane.MembersOf([]int{0}), s.Job.World.Topo, 0, off, plane.Options{})
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
