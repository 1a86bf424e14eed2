package event

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// side is n ranks, of which rank is the lowest, that have made collective 7 with that hash.
func side(hash uint32, rank int32, n int) Party {
	return Party{Call: call.Record{Place: 7, Hash: hash}, Rank: rank, N: n}
}

// The ranks that have made the same call are one party, known by its lowest rank.
func TestPartiesAdd(t *testing.T) {
	var p Parties
	for _, s := range []Party{side(1, 4, 1), side(2, 3, 2), side(1, 1, 1), side(1, 9, 3)} {
		p.Add(s)
	}
	assert.Equal(t, Parties{side(1, 1, 5), side(2, 3, 2)}, p)
}

// A party is the largest for certain once the ranks that are still to come can change nothing.
func TestLargest(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    Parties
		size int
		most uint32 // its hash; 0: none
		sure bool
	}{
		{"nobody has come", nil, 3, 0, false},
		{"one of three", Parties{side(1, 0, 1)}, 3, 1, false},
		{"two of three", Parties{side(1, 0, 2)}, 3, 1, true},
		{"two against one", Parties{side(1, 0, 1), side(2, 1, 2)}, 3, 2, true},
		{"two against one of five", Parties{side(1, 0, 1), side(2, 1, 2)}, 5, 2, false},
		{"a tie of all", Parties{side(1, 0, 2), side(2, 1, 2)}, 4, 0, true},
		{"a tie so far", Parties{side(1, 0, 2), side(2, 1, 2)}, 5, 0, false},
		{"three against one and one of six", Parties{side(1, 0, 1), side(2, 1, 3), side(3, 2, 1)}, 6, 2, true},
		{"the second counts, not the sum", Parties{side(1, 0, 2), side(2, 1, 4), side(3, 2, 2)}, 9, 2, true},
	} {
		most, sure := tc.p.Largest(tc.size)
		assert.Equal(t, tc.sure, sure, tc.name)
		if tc.most == 0 {
			assert.Nil(t, most, tc.name)
		} else if assert.NotNil(t, most, tc.name) {
			assert.Equal(t, tc.most, most.Call.Hash, tc.name)
		}
	}
}

// A mismatch that rank 0 reports of rank 1 names a rank of the smaller side as the one at fault.
func TestBlameMinority(t *testing.T) {
	for _, tc := range []struct {
		name         string
		call, theirs call.Record // of rank 0, of rank 1
		p            Parties
		peer, from   int32
		blamed, with uint32 // the hashes of their calls
	}{
		{"rank 0 is with the most", call.Record{Place: 7, Hash: 1}, call.Record{Place: 7, Hash: 2}, Parties{side(1, 0, 2), side(2, 1, 1)}, 1, 0, 2, 1},
		{"rank 1 is", call.Record{Place: 7, Hash: 1}, call.Record{Place: 7, Hash: 2}, Parties{side(1, 0, 1), side(2, 1, 2)}, 0, 1, 1, 2},
		{"neither is", call.Record{Place: 7, Hash: 1}, call.Record{Place: 7, Hash: 2}, Parties{side(1, 0, 1), side(2, 1, 1), side(3, 2, 2)}, 0, 2, 1, 3},
		{"a tie", call.Record{Place: 7, Hash: 1}, call.Record{Place: 7, Hash: 2}, Parties{side(1, 0, 1), side(2, 1, 1)}, 1, 0, 2, 1},
		{"rank 1 is elsewhere, and rank 4 differs", call.Record{Place: 7, Hash: 1}, call.Record{Place: 5, Hash: 9}, Parties{side(1, 0, 3), side(2, 4, 1)}, 4, 0, 2, 1},
		{"rank 1 is elsewhere, and nobody differs", call.Record{Place: 7, Hash: 1}, call.Record{Place: 5, Hash: 9}, Parties{side(1, 0, 3)}, 1, 0, 9, 1},
	} {
		e := Event{Peer: 1, From: 0, Call: tc.call, Theirs: tc.theirs}
		e.BlameMinority(tc.p, 5)
		assert.Equal(t, []int32{tc.peer, tc.from}, []int32{e.Peer, e.From}, tc.name)
		assert.Equal(t, []uint32{tc.blamed, tc.with}, []uint32{e.Theirs.Hash, e.Call.Hash}, tc.name)
	}
}

// Only a collective of more than two ranks has sides that others can tell.
func TestIsDisputed(t *testing.T) {
	good := Event{Code: uint8(call.Mismatch), Call: call.Record{Kind: call.AllReduce}}
	for _, tc := range []struct {
		name   string
		change func(*Event)
		size   int
		want   bool
	}{
		{"a collective", func(*Event) {}, 3, true},
		{"two ranks", func(*Event) {}, 2, false},
		{"something else", func(e *Event) { e.Code = uint8(call.RankLost) }, 3, false},
		{"a call that was rejected", func(e *Event) { e.Bytes = 1 }, 3, false},
		{"a call that is not known", func(e *Event) { e.Call.Kind = 0 }, 3, false},
		{"a send", func(e *Event) { e.Call.Kind = call.Send }, 3, false},
	} {
		e := good
		tc.change(&e)
		assert.Equal(t, tc.want, e.IsDisputed(tc.size), tc.name)
	}
}
