package status

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// What a rank has said last takes the place of what it said before, and statuses come in the order of Comms and ranks.
func TestTable(t *testing.T) {
	var table Table
	for _, s := range []Status{
		{Comm: 1<<63 | 2, Rank: 1, Calls: 4},
		{Comm: 1, Rank: 2, Calls: 7},
		{Comm: 1, Rank: 0, Calls: 8},
		{Comm: 1, Rank: 2, Calls: 9, Doing: Waits, Number: 2},
		{Comm: 1, Rank: 5, Calls: 9, Hash: 3, Brief: true},
		{Comm: 1, Rank: 2, Calls: 8, Number: 1}, // by a longer way
	} {
		table.Keep(&s, int64(s.Calls))
	}
	assert.Equal(t, []Status{{Comm: 1, Rank: 0, Calls: 8, heard: 8}, {Comm: 1, Rank: 2, Calls: 9, Doing: Waits, Number: 2, heard: 9}}, table.Of(1))
	assert.Equal(t, []Status{{Comm: 1, Rank: 0, Calls: 8, heard: 8}, {Comm: 1, Rank: 2, Calls: 9, Doing: Waits, Number: 2, heard: 9},
		{Comm: 1<<63 | 2, Rank: 1, Calls: 4, heard: 4}}, table.Of(0))
	assert.Empty(t, table.Of(7))
	table.Forget(1)
	assert.Equal(t, []Status{{Comm: 1<<63 | 2, Rank: 1, Calls: 4, heard: 4}}, table.Of(0))
	assert.False(t, table.HasBrief(&Status{Comm: 1, Calls: 9, Hash: 3}))
}

// The last few places in the order of calls are compared, of other ranks alone.
func TestBriefs(t *testing.T) {
	var table Table
	brief := func(rank int32, calls uint64, hash uint32) *Status {
		return &Status{Comm: 1, Rank: rank, Calls: calls, Hash: hash, Brief: true}
	}
	assert.False(t, table.HasBrief(brief(0, 1, 1)))
	for i := range uint64(keptBriefs) {
		table.Keep(brief(int32(i), i+1, 10), 0)
	}
	assert.Empty(t, table.Of(0), "they say nothing of where a rank stands")
	assert.True(t, table.HasBrief(brief(9, 1, 10)))
	assert.False(t, table.HasBrief(brief(9, 1, 11)))
	for _, tc := range []struct {
		of   *Status
		rank int32 // -1: nothing contradicts it
	}{{brief(9, 3, 10), -1}, {brief(9, 3, 11), 2}, {brief(2, 3, 11), -1}, {brief(9, keptBriefs+1, 11), -1}, {&Status{Comm: 2, Rank: 9, Calls: 3, Hash: 11}, -1}} {
		other, ok := table.Contradiction(tc.of)
		assert.Equal(t, tc.rank >= 0, ok, "%+v", tc.of)
		assert.Equal(t, max(tc.rank, 0), other.Rank)
	}
	table.Keep(brief(0, keptBriefs+1, 10), 0)
	assert.False(t, table.HasBrief(brief(9, 1, 10)), "the oldest has made room")
	assert.True(t, table.HasBrief(brief(9, 2, 10)))
}

// Only ranks that wait in several Comms, or for a single rank, can wait for each other.
func TestMayCircle(t *testing.T) {
	waits := func(comm uint64, rank int32, kind call.Kind) Status {
		return Status{Comm: comm, Rank: rank, Doing: Waits, Call: call.Record{Kind: kind}}
	}
	failed, outside := waits(2, 1, call.AllReduce), waits(2, 1, call.AllReduce)
	failed.Failed, outside.Doing = true, Outside
	for _, tc := range []struct {
		name string
		all  []Status
		want bool
	}{
		{"nobody", nil, false},
		{"one Comm", []Status{waits(1, 0, call.AllReduce), waits(1, 1, call.AllReduce)}, false},
		{"two Comms", []Status{waits(1, 0, call.AllReduce), waits(2, 1, call.AllReduce)}, true},
		{"a receive", []Status{waits(1, 0, call.Recv)}, true},
		{"one has failed", []Status{waits(1, 0, call.AllReduce), failed}, false},
		{"one does not wait", []Status{waits(1, 0, call.AllReduce), outside}, false},
	} {
		var table Table
		for _, s := range tc.all {
			table.Keep(&s, 0)
		}
		assert.Equal(t, tc.want, table.MayCircle(), tc.name)
	}
}

// What a rank has said last is known by its Comm and rank.
func TestAt(t *testing.T) {
	var table Table
	s := Status{Comm: 3, Rank: 1, Calls: 7}
	table.Keep(&s, 5)
	got, ok := table.At(3, 1)
	assert.True(t, ok)
	assert.EqualValues(t, 7, got.Calls)
	_, ok = table.At(3, 2)
	assert.False(t, ok)
	_, ok = table.At(4, 1)
	assert.False(t, ok)
}
