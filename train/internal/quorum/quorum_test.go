package quorum

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

// in is rank id of the epoch 5 of ranks 1 to n.
func in(n int, id int64, ended ...int64) Rank {
	r := New(id)
	var all []int64
	for i := range int64(n) {
		all = append(all, i+1)
	}
	r.Adopt(5, all)
	for _, e := range ended {
		r.Ended(e)
	}
	return r
}

// A side goes on with most of the ranks that have not ended, or with the first of half.
func TestMay(t *testing.T) {
	for _, tc := range []struct {
		n     int
		ended []int64
		side  []int64
		want  bool
	}{
		{3, nil, []int64{2, 3}, true}, {3, nil, []int64{1}, false},
		{4, nil, []int64{1, 4}, true}, {4, nil, []int64{2, 3}, false},
		{2, nil, []int64{2}, false}, {2, []int64{1}, []int64{2}, true},
		{4, []int64{1}, []int64{2, 3}, true}, {4, []int64{1}, []int64{2}, false},
		{5, []int64{1}, []int64{2, 4}, true}, {5, []int64{1}, []int64{4, 5}, false},
		{5, []int64{9, 1, 1}, []int64{4, 5}, false},                            // one that came later, and one twice
		{3, nil, []int64{1, 2, 3, 9}, true}, {3, nil, []int64{1, 8, 9}, false}, // guests have no vote
		{5, []int64{2}, []int64{1}, false}, // a side of two, which lost one while it waited
	} {
		r := in(tc.n, tc.side[0], tc.ended...)
		require.Equal(t, tc.want, r.May(tc.side), "%v", tc)
	}
	guest := New(9)
	require.False(t, guest.May([]int64{9}), "it knows nothing")
	guest.Learn(5, []int64{1, 2})
	require.False(t, guest.May([]int64{8, 9}), "those that have the state are not there")
	require.True(t, guest.May([]int64{1, 8, 9}))
	guest.Ended(1)
	guest.Ended(2)
	require.True(t, guest.May([]int64{8, 9}), "nobody else can go on")
}

// alone is what a rank hears that is a side of its own.
func alone(r *Rank) []Said { return []Said{{r.id, r.Epoch(), r.Sure()}} }

// A rank that claims the epoch is lost between any two requests. Another one claims it then, or hears who did.
func TestClaimLost(t *testing.T) {
	for answers := range 30 {
		b := &book{map[string]int64{}, map[string][]byte{}, 1000}
		ranks := [3]Rank{in(3, 1), in(3, 2), in(3, 3)}
		for i := range ranks {
			_, err := ranks[i].Ask(t.Context(), b, alone(&ranks[i]), false)
			require.NoError(t, err)
		}
		b.answers = answers
		_, err := ranks[0].Ask(t.Context(), b, alone(&ranks[0]), true)
		b.answers = 1000
		others, later := ranks[1].Ask(t.Context(), b, alone(&ranks[1]), true)
		require.NoError(t, later)
		require.NotEqual(t, others, ranks[1].May([]int64{2}))
		if err == nil && answers > 0 {
			require.True(t, ranks[0].May([]int64{1}))
			require.True(t, others)
		}
	}
}

// All ranks are alone and ask a hall at once, again and again: one goes on.
func TestAskAtOnce(t *testing.T) {
	const n = 7
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer hall.Close()
	var all sync.WaitGroup
	var first atomic.Int64
	for i := range n {
		all.Go(func() {
			r, others := in(n, int64(i+1)), false
			for !others && !r.May([]int64{r.id}) && !t.Failed() {
				var err error
				if others, err = r.Ask(t.Context(), hall, alone(&r), true); err != nil {
					t.Error(err)
				}
			}
			if !others {
				first.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, first.Load())
}
