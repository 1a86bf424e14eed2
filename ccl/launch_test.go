package ccl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Launches stand among calls by when they began; those of another stream, or after the place that was passed, are not over.
func TestLaunches(t *testing.T) {
	var ls launches
	calls := []Call{{Kind: KindAllReduce, Seq: 1, Start: 10}, {Kind: KindAllReduce, Seq: 2, Start: 30}}
	assert.Equal(t, calls, ls.among(calls, 64))
	one, other := &deviceStream{}, &deviceStream{}
	for _, on := range []*deviceStream{one, other, one} {
		ls.add(launch{on: on, call: Call{Kind: KindGraph, Count: 2, State: Running, Start: 20}})
	}
	assert.EqualValues(t, 2, one.launched.Load())
	ran := func(place uint64, now time.Duration) []Observation {
		return ls.end(Complete, func(l *launch) bool { return l.on == one && l.place <= place }, "world", now)
	}
	over := ran(1, 50)
	assert.Len(t, over, 1)
	assert.EqualValues(t, 1, over[0].Call.Seq)
	assert.Equal(t, "world", over[0].Comm)
	assert.Empty(t, ran(1, 60), "once")
	var seqs []uint64
	for _, c := range ls.among(calls, 64) {
		seqs = append(seqs, c.Seq)
	}
	assert.Equal(t, []uint64{1, 1, 2, 3, 2}, seqs)
	last := ls.among(calls, 2)
	assert.Len(t, last, 2)
	assert.Equal(t, Running, last[0].State)
	assert.Equal(t, "Graph #3 of 2 calls", last[0].String())
	assert.Len(t, ran(9, 70), 1)
	all := func(*launch) bool { return true }
	lost := ls.end(Failed, all, "world", 80)
	assert.Len(t, lost, 1, "the one on the other stream")
	assert.Equal(t, Call{Kind: KindGraph, Seq: 2, Count: 2, State: Failed, Start: 20, End: 80}, lost[0].Call)
	assert.Empty(t, ls.end(Failed, all, "world", 90), "once")
}
