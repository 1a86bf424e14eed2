package event

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Proposals that say of a loss as much as another does.
func TestAlike(t *testing.T) {
	var q Sequencer
	known := Event{Comm: 7, Code: uint8(call.RankLost), Peer: 3, Stage: Proposed, Loss: Ended, Origin: 1}
	q.Remember(&known)
	for _, tc := range []struct {
		name string
		e    Event
		want bool
	}{
		{"by another", Event{Comm: 7, Code: known.Code, Peer: 3, Loss: Ended, Origin: 2}, true},
		{"with less known", Event{Comm: 7, Code: known.Code, Peer: 3, Loss: Suspected}, true},
		{"with more known", Event{Comm: 7, Code: known.Code, Peer: 3, Loss: Certain}, false},
		{"of another rank", Event{Comm: 7, Code: known.Code, Peer: 4, Loss: Ended}, false},
		{"of another Comm", Event{Code: known.Code, Peer: 3, Loss: Ended}, false},
		{"another failure", Event{Comm: 7, Code: uint8(call.Timeout), Peer: 3, Loss: Ended}, false},
	} {
		require.Equal(t, tc.want, len(q.Alike(&tc.e)) == 1, tc.name)
	}
}

// Proposals are decided in the order in which they came, one for each Comm and each lost rank.
func TestSequencerDecidesInOrder(t *testing.T) {
	var q Sequencer
	lost := func(rank int32) Event { return Event{Code: uint8(call.RankLost), Peer: rank, Stage: Proposed} }
	fails := func(comm uint64, peer int32) Event {
		return Event{Comm: comm, Code: uint8(call.Aborted), Peer: peer, Stage: Proposed}
	}
	assert.True(t, q.IsIdle())
	for _, e := range []Event{fails(8, 1), lost(3), fails(8, 2), lost(4), lost(3)} {
		q.Remember(&e)
	}
	assert.True(t, q.Any())
	assert.False(t, q.IsIdle())
	assert.Len(t, q.All(), 5)
	assert.Empty(t, q.History())
	var got []Event
	for q.Prune() > 0 {
		d, ok := q.Next(0)
		assert.True(t, ok)
		got = append(got, d)
	}
	want := []Event{fails(8, 1), lost(3), lost(4)}
	for i := range want {
		want[i].Stage = Decided
	}
	assert.Equal(t, want, got)
	assert.True(t, q.IsIdle())
	again := fails(8, 5)
	assert.True(t, q.IsDecided(&again))
	q.Remember(&again)
	assert.False(t, q.Any(), "nobody proposes what is decided")
	for _, e := range got {
		q.Remember(&e)
	}
	assert.Equal(t, got, q.History())
}

// A mismatch between hosts is decided once its sides are known for certain; else after HoldFar if all hosts have answered, and after
// HoldMost if some have not. Others need not wait for it.
func TestSequencerCountsVotes(t *testing.T) {
	vote := func(node int32, rank int32, hash uint32, n int) *Event {
		return &Event{Comm: 8, Code: uint8(Voted), Peer: int32(n), From: rank, Node: node, Call: call.Record{Place: 7, Hash: hash}}
	}
	last := func(e *Event) *Event { // of what its host, which has 2 ranks, answers first
		e.Size = 2
		return e
	}
	mismatch := Event{Comm: 8, Code: uint8(call.Mismatch), Peer: 2, From: 0, Size: 4, Stage: Proposed,
		Call: call.Record{Place: 7, Hash: 1}, Theirs: call.Record{Place: 7, Hash: 2}}
	lost := Event{Code: uint8(call.RankLost), Peer: 3, Stage: Proposed}
	for _, tc := range []struct {
		name  string
		votes []*Event
		now   time.Duration // when it is decided
		peer  int32
	}{
		{"nobody votes", nil, HoldMost, 2},
		{"one host has not answered", []*Event{vote(0, 0, 1, 1), last(vote(0, 1, 2, 1))}, HoldMost, 2},
		{"a host has not said all", []*Event{last(vote(0, 0, 1, 1)), vote(1, 2, 2, 1)}, HoldMost, 2},
		{"an answer comes twice", []*Event{last(vote(0, 0, 1, 1)), last(vote(0, 0, 1, 1))}, HoldMost, 2},
		{"a rank has not come", []*Event{last(vote(0, 0, 1, 1)), last(vote(1, 2, 2, 2))}, HoldFar, 0},
		{"no rank of a host has come", []*Event{last(vote(1, 0, 0, 0)), vote(0, 0, 1, 1), last(vote(0, 1, 2, 1))}, HoldFar, 2},
		{"its side is larger", []*Event{vote(0, 0, 1, 2), vote(1, 2, 2, 1), vote(1, 3, 1, 1)}, 0, 2},
		{"its side is smaller", []*Event{vote(0, 0, 1, 1), vote(0, 1, 2, 1), vote(1, 2, 2, 2)}, 0, 0},
		{"a host votes again as more of its ranks come", []*Event{last(vote(0, 0, 1, 1)), last(vote(1, 2, 2, 1)), vote(1, 2, 2, 2), vote(1, 2, 2, 2)}, HoldFar, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var q Sequencer
			q.Remember(&mismatch)
			q.Remember(&lost)
			if tc.now > 0 {
				d, ok := q.Next(0)
				assert.True(t, ok)
				assert.EqualValues(t, 3, d.Peer, "the loss need not wait")
			}
			for _, v := range tc.votes {
				q.Vote(v, 0)
			}
			if tc.now > 0 {
				_, ok := q.Next(tc.now - 1)
				assert.False(t, ok)
			}
			d, ok := q.Next(tc.now)
			assert.True(t, ok)
			assert.Equal(t, []any{uint64(8), tc.peer, Decided}, []any{d.Comm, d.Peer, d.Stage})
			q.Prune()
			assert.Empty(t, q.polls)
		})
	}
}

// What a Sequencer keeps is bounded, and it keeps failures alone.
func TestSequencerIsBounded(t *testing.T) {
	var q Sequencer
	for i := range 3 * shm.RingSlots {
		q.Remember(&Event{Comm: uint64(i + 1), Code: uint8(call.Aborted)})
		q.Remember(&Event{Comm: uint64(i+1) << 32, Code: uint8(call.Aborted), Stage: Proposed})
		q.Vote(&Event{Comm: uint64(i+1) << 32, Call: call.Record{Place: 1}}, 0)
	}
	assert.Len(t, q.History(), shm.RingSlots)
	assert.EqualValues(t, 3*shm.RingSlots, q.History()[shm.RingSlots-1].Comm)
	assert.Len(t, q.pending, shm.RingSlots)
	assert.Len(t, q.polls, pollsMax)
	for _, code := range []call.Code{RankLeft, AskLeft, NewLead, Voted} {
		q.Remember(&Event{Comm: 1 << 60, Code: uint8(code)})
		assert.False(t, q.IsDecided(&Event{Comm: 1 << 60}), code)
	}
}
