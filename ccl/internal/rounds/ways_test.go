package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	this "github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// teamOf is a rank of n that knows only what the choice of a way depends on.
func teamOf(n int, inPlace bool) *Team {
	c := new(Team)
	c.bind(seat{n: n, local: new(region.Region), mem: new(reach.Reach)})
	c.offers.posted = make([]offer, n)
	if inPlace {
		c.offers.posted[n-1].flags = offersInPlace
	}
	return c
}

func TestAllReduceWay(t *testing.T) {
	for _, tc := range []struct {
		name    string
		ranks   int
		way     way
		n       int
		inPlace bool // on one rank
		want    allReduceWay
	}{
		{"all can be touched", 2, byDirect, 8, false, direct},
		{"by as many as may", tuning.MaxDirect, byDirect, 8, true, direct},
		{"by more", tuning.MaxDirect + 1, byDirect, 1 << 20, false, readHalves},
		{"by more, too many bytes", tuning.MaxDirect + 1, byDirect, tuning.ReadHalvesTo + 8, false, stageAll},
		{"nothing can be reached", 2, byStage, 1 << 20, false, stageAll},
		{"two ranks, too few bytes to be read", 2, byRead, tuning.ReadTwoFrom - 8, false, stageAll},
		{"two ranks", 2, byRead, tuning.ReadTwoFrom, false, readAll},
		{"two ranks, as much as all of it is read", 2, byRead, tuning.ReadAllTo, false, readAll},
		{"two ranks, more", 2, byRead, tuning.ReadAllTo + 8, false, readHalves},
		{"two ranks, one in place", 2, byRead, tuning.ReadInPlaceFrom - 8, true, stageAll},
		{"two ranks, one in place, much", 2, byRead, tuning.ReadInPlaceFrom, true, readHalves},
		{"three ranks, too few bytes to be read", 3, byRead, 3*tuning.ReadPartFrom - 8, false, stageAll},
		{"three ranks", 3, byRead, 3 * tuning.ReadPartFrom, false, readHalves},
		{"three ranks, in place", 3, byRead, 3 * tuning.ReadPartFrom, true, readHalves},
		{"sixteen ranks, too few bytes to be read", 16, byRead, 16*tuning.ReadPartFrom - 8, false, stageAll},
		{"sixteen ranks", 16, byRead, 16 * tuning.ReadPartFrom, false, readHalves},
		{"as much as is read", 3, byRead, tuning.ReadHalvesTo, false, readHalves},
		{"more", 3, byRead, tuning.ReadHalvesTo + 8, false, stageAll},
	} {
		c := teamOf(tc.ranks, tc.inPlace)
		require.LessOrEqual(t, 2*shm.Page, c.staging.chunk, "the edges fit")
		assert.Equal(t, tc.inPlace, c.offers.someInPlace(), tc.name)
		assert.Equal(t, tc.want, c.offers.allReduceWay(tc.way, tc.n), tc.name)
	}
	c := teamOf(3, false)
	c.staging.chunk = 2*shm.Page - 64
	assert.Equal(t, readHalves, c.offers.allReduceWay(byDirect, 8), "edges that do not fit into a chunk")
	c.mem.Known.All = true
	assert.Equal(t, direct, c.offers.allReduceWay(byDirect, 8), "goroutine ranks have no edges")
}

// Two ranks stage small vectors whose memory they can touch, and larger ones in place.
func TestStagesShared(t *testing.T) {
	stages := func(ranks, to, n int, inPlace bool) bool {
		c := teamOf(ranks, inPlace)
		c.local.Layout.StageSharedTo = to
		return c.offers.stagesShared(n, inPlace)
	}
	for _, tc := range []struct {
		ranks, n int
		inPlace  bool
		want     bool
	}{
		{2, 1000, false, true}, {2, 1001, false, false}, {2, 2000, true, true}, {2, 2001, true, false}, {3, 8, false, false}, {3, 8, true, false},
	} {
		assert.Equal(t, tc.want, stages(tc.ranks, 1000, tc.n, tc.inPlace), "%+v", tc)
	}
	assert.False(t, stages(2, 0, 8, true))
}

func TestReads(t *testing.T) {
	for _, tc := range []struct {
		kind call.Kind
		from int // -1: never
		to   int
	}{
		{call.Reduce, -1, 0},
		{call.Broadcast, tuning.ReadRootFrom, tuning.ReadRootTo},
		{call.Gather, tuning.ReadRootFrom, 0}, {call.GatherV, tuning.ReadRootFrom, 0},
		{call.Scatter, tuning.ReadScatterFrom, 0}, {call.ScatterV, tuning.ReadScatterFrom, 0},
		{call.AllGather, tuning.ReadFrom, 0}, {call.AllToAll, tuning.ReadFrom, 0}, {call.ReduceScatter, tuning.ReadFrom, 0},
	} {
		if tc.from < 0 {
			assert.False(t, readPays(tc.kind, 1<<40), "%v", tc.kind)
			continue
		}
		assert.False(t, readPays(tc.kind, tc.from-1), "%v", tc.kind)
		assert.True(t, readPays(tc.kind, tc.from), "%v", tc.kind)
		assert.Equal(t, tc.to == 0, readPays(tc.kind, 1<<40), "%v", tc.kind)
		if tc.to > 0 {
			assert.True(t, readPays(tc.kind, tc.to), "%v", tc.kind)
			assert.False(t, readPays(tc.kind, tc.to+1), "%v", tc.kind)
		}
	}
	// Among ranks that read what moves alone.
	l := tuning.Layout{ReadMovedFrom: 1000}
	for _, tc := range []struct {
		kind call.Kind
		n    int // ranks
		from int // bytes of a block; 0: never
	}{
		{call.Scatter, 2, 2000}, {call.ScatterV, 3, 1000}, {call.Scatter, 9, 250},
		{call.AllToAll, 2, 1000}, {call.AllToAll, 9, 1000}, {call.AllToAllV, 3, 1000},
		{call.Broadcast, 2, 1000}, {call.AllGather, 2, 1000}, {call.AllGatherV, 2, 1000}, {call.Gather, 2, 16000}, {call.GatherV, 2, 16000},
		{call.Broadcast, 3, 0}, {call.AllGather, 3, 0}, {call.Gather, 3, 0},
		{call.ReduceScatter, 2, 0}, {call.Reduce, 2, 0}, {call.AllReduce, 2, 0},
	} {
		assert.Equal(t, tc.from > 0, movedPays(&l, tc.kind, tc.from, tc.n), "%v of %d ranks", tc.kind, tc.n)
		assert.False(t, movedPays(&l, tc.kind, tc.from-1, tc.n), "%v of %d ranks", tc.kind, tc.n)
		assert.Equal(t, tc.from > 0, movedPays(&l, tc.kind, 1<<40, tc.n), "%v of %d ranks", tc.kind, tc.n)
	}
	l.ReadMovedFrom = 0
	assert.False(t, movedPays(&l, call.AllToAll, 1<<40, 2))
	for _, n := range []int{1<<20 - 4, 1 << 20} {
		c := ranksOf(t, 2, byStage)[0]
		c.mem.Known.Moves, c.local.Layout.ReadMovedFrom = true, 1<<20
		read, f := c.offers.reads(t.Context(), callOf(call.AllToAll, -1, n/4, nil, nil), n)
		require.Nil(t, f)
		assert.Equal(t, n >= 1<<20, read, "%d bytes", n)
	}
	// What fits into a slot is not read, even where it could be; what does not is in place among goroutine ranks.
	for _, w := range []way{byStage, byRead, byDirect} {
		c := ranksOf(t, 2, w)[0]
		for _, tc := range []struct {
			n    int
			want bool
		}{{tuning.Inline(2), false}, {tuning.Inline(2) + 1, w == byDirect}, {tuning.ReadFrom, w != byStage}} {
			read, f := c.offers.reads(t.Context(), callOf(call.AllGather, -1, tc.n/4, nil, nil), tc.n)
			require.Nil(t, f)
			assert.Equal(t, tc.want, read, "way %d, %d bytes", w, tc.n)
		}
	}
}

func TestStreams(t *testing.T) {
	c := ranksOf(t, 2, byStage)[0]
	for kind, from := range map[call.Kind]int{
		call.Reduce: this.CPU.StreamReduceFrom, call.AllReduce: this.CPU.StreamAllReduceFrom, call.Broadcast: this.CPU.StreamFrom, call.Gather: this.CPU.StreamFrom,
	} {
		assert.False(t, c.offers.streams(kind, from-1), "%v", kind)
		assert.True(t, c.offers.streams(kind, from), "%v", kind)
	}
}
