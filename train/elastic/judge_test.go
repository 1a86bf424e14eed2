package elastic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	in := func(round, hash int64) record { return record{in: true, round: round, hash: hash} }
	first := func(round, hash int64) record { return record{round: round, hash: hash} }
	begun := func(r record, means int64) record { r.begun, r.means = true, means; return r }
	for name, tc := range map[string]struct {
		all     []record
		source  int // a rank that has the state
		sources []int
		need    []int
		begun   []bool
		workers int
		kept    int
	}{
		"a job begins, and rank 0's state is that of all": {
			[]record{first(0, 7), first(0, 8), first(0, 9)}, 0, []int{0}, []int{1, 2}, []bool{false, false, false}, 0, 0},
		"a job begins, and most have the same": {
			[]record{first(0, 7), first(0, 8), first(0, 8)}, 1, []int{1, 2}, []int{0}, []bool{false, false, false}, 0, 0},
		"a job begins with the furthest checkpoint": {
			[]record{first(3, 7), first(9, 8), first(9, 6)}, 1, []int{1}, []int{0, 2}, []bool{false, false, false}, 0, 0},
		"a newcomer with a checkpoint that is further": {
			[]record{in(3, 7), in(3, 7), first(9, 8)}, 0, []int{0, 1}, []int{2}, []bool{false, false, false}, 0, 0},
		"a newcomer that has the state by chance sends it, too": {
			[]record{in(3, 7), in(3, 7), first(0, 7)}, 0, []int{0, 1, 2}, nil, []bool{false, false, false}, 0, 0},
		"a rank has missed the end of a round": {
			[]record{in(3, 7), begun(in(2, 5), 1), in(3, 7)}, 0, []int{0, 2}, []int{1}, []bool{false, false, false}, 0, 0},
		"others have begun the next": {
			[]record{begun(in(3, 7), 0), begun(in(2, 5), 1), in(3, 7)}, 0, []int{0, 2}, []int{1}, []bool{true, false, false}, 1, 0},
		"a loss in the middle of a round": {
			[]record{begun(in(3, 7), 2), begun(in(3, 7), 1), begun(in(3, 7), 2)}, 0, []int{0, 1, 2}, nil, []bool{true, true, true}, 3, 1},
		"one of them is damaged": {
			[]record{begun(in(3, 6), 2), begun(in(3, 7), 1), begun(in(3, 7), 2)}, 1, []int{1, 2}, []int{0}, []bool{false, true, true}, 2, 0},
		"two differ, and none is right": {
			[]record{in(3, 6), in(3, 7)}, 0, []int{0}, []int{1}, []bool{false, false}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(tc.all)
			require.Equal(t, tc.all[tc.source].hash, v.state.hash)
			require.Equal(t, tc.all[tc.source].round, v.state.round)
			require.Equal(t, tc.sources, v.sources)
			require.Equal(t, tc.need, v.need)
			require.Equal(t, tc.begun, v.begun)
			require.Equal(t, []int{tc.workers, tc.kept}, []int{v.workers, v.kept}, "workers, kept")
			require.Empty(t, v.alien)
		})
	}
	v := judge([]record{{bytes: 8}, {bytes: 8}, {bytes: 12}})
	require.Equal(t, []int{2}, v.alien, "a state of another size")
}

// A record is what it was when it has been sent.
func TestRecord(t *testing.T) {
	r := record{1, 2, true, false, true, 3, false, true, 4, 5, 6, 7, true}
	w := r.append(nil)
	require.Len(t, w, words)
	require.Equal(t, r, recordOf(w))
	r = record{in: false, late: true, begun: true}
	require.Equal(t, r, recordOf(r.append(nil)))
}

// A meeting of the largest job costs no pass over all ranks for each of them.
func TestJudgeMany(t *testing.T) {
	const n = 120_960
	all := make([]record, n)
	for r := range all {
		all[r] = record{in: true, round: 7, hash: int64(r)}
	}
	all[n-1].hash = all[n-2].hash
	v := judge(all)
	require.Equal(t, []int{n - 2, n - 1}, v.sources)
	require.Len(t, v.need, n-2)
}
