package mirror

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// rank makes a row: of a rank that is not new, has nothing, and restores 8 bytes.
func row(r, n int, set ...func([]int64)) []int64 {
	row := make([]int64, columns)
	row[colEvery], row[colAway], row[colBytes], row[colRank], row[colSize] = 1, 1, 8, int64(r), int64(n)
	row[colWhole], row[colLive], row[colChanged] = -1, -1, -1
	for at := colOwn; at < columns; at += perSlot {
		row[at], row[at+2] = -1, -1
	}
	for _, f := range set {
		f(row)
	}
	return row
}

func own(slot, step int) func([]int64) {
	return func(row []int64) { row[colOwn+perSlot*slot], row[colOwnBytes+perSlot*slot] = int64(step), 8 }
}

func held(slot, step, owner int) func([]int64) {
	return func(row []int64) {
		at := colHeld + perSlot*slot
		row[at], row[at+1], row[at+2] = int64(step), int64(owner), 8
	}
}

func set(col, value int) func([]int64) { return func(row []int64) { row[col] = int64(value) } }

func isFresh(row []int64) { row[colFresh], row[colRank], row[colSize] = 1, -1, 0 }

func begun(row []int64) { row[colRank], row[colSize] = -1, 0 }

// All ranks decide by the same table: what is restored, and from where.
func TestDecide(t *testing.T) {
	each, alike, pairs := []int{0, 1, 2}, []int{4, 4, 4}, []int{0, 1, 0}
	self := func(n int) (from []source) {
		for r := range n {
			from = append(from, source{rank: r, owner: r})
		}
		return from
	}
	for _, c := range []struct {
		name   string
		rows   table
		shards []int
		want   plan
		err    string
		lost   bool
	}{
		{name: "a job begins", rows: table{row(0, 3, begun), row(1, 3, begun), row(2, 3, begun)}, shards: each, want: plan{step: -1}},
		{name: "one rank alone", rows: table{row(0, 1, own(1, 4))}, shards: []int{0}, want: plan{4, self(1)}},
		{name: "nothing is lost", shards: each, want: plan{5, self(3)},
			rows: table{row(0, 3, own(0, 5), own(1, 4)), row(1, 3, own(1, 5), own(0, 4)), row(2, 3, own(0, 5))}},
		{name: "one has a step that the others do not have", shards: each, want: plan{5, self(3)},
			rows: table{row(0, 3, own(0, 5), own(1, 6)), row(1, 3, own(1, 5), own(0, 4)), row(2, 3, own(0, 5))}},
		{name: "a lost rank's holder has it", shards: each, want: plan{5, []source{{0, false, 0}, {2, true, 1}, {2, false, 2}}},
			rows: table{row(0, 3, own(0, 5), own(1, 4)), row(1, 3, isFresh), row(2, 3, own(0, 5), held(0, 5, 1))}},
		{name: "its holder has held others since", shards: each, want: plan{5, []source{{0, false, 0}, {2, true, 1}, {2, false, 2}}},
			rows: table{row(0, 3, own(0, 5)), row(1, 3, isFresh), row(2, 3, own(0, 5), own(1, 5), held(0, 5, 0), held(1, 5, 1))}},
		{name: "its holder has only the step before", shards: each, want: plan{4, []source{{0, false, 0}, {2, true, 1}, {2, false, 2}}},
			rows: table{row(0, 3, own(0, 5), own(1, 4)), row(1, 3, isFresh), row(2, 3, own(0, 5), own(1, 4), held(1, 4, 1), set(colWhole, 4))}},
		{name: "what is held of another rank does not help", shards: each, lost: true, err: "the state of rank 1 in step 4 is nowhere",
			rows: table{row(0, 3, own(1, 4)), row(1, 3, isFresh), row(2, 3, own(1, 4), held(1, 4, 0), set(colWhole, 4))}},
		{name: "owner and holder are lost", shards: each, lost: true, err: "the state of rank 1 in step 4 is nowhere",
			rows: table{row(0, 3, own(1, 4), set(colWhole, 4)), row(1, 3, isFresh), row(2, 3, isFresh)}},
		{name: "lost in the first Save of all", shards: each, want: plan{step: -1},
			rows: table{row(0, 3, own(1, 0)), row(1, 3, isFresh), row(2, 3)}},
		{name: "a replica has it", shards: pairs, want: plan{4, []source{{2, false, 2}, {1, false, 1}, {2, false, 2}}},
			rows: table{row(0, 3, isFresh), row(1, 3, own(0, 4)), row(2, 3, own(1, 4))}},
		{name: "all alike: the furthest", shards: alike, want: plan{7, []source{{1, false, 1}, {1, false, 1}, {1, false, 1}}},
			rows: table{row(0, 3, set(colLive, 6)), row(1, 3, set(colLive, 7)), row(2, 3, isFresh)}},
		{name: "all alike: nothing yet", shards: alike, want: plan{-1, make([]source, 3)},
			rows: table{row(0, 3), row(1, 3), row(2, 3, isFresh)}},
		{name: "all alike: one has gone on without a Save", shards: alike, want: plan{6, []source{{0, false, 0}, {0, false, 0}, {0, false, 0}}},
			rows: table{row(0, 3, set(colLive, 6)), row(1, 3, set(colChanged, 6)), row(2, 3, isFresh)}},
		{name: "all alike: all have gone on without a Save", shards: alike, lost: true, err: "Save stands directly after the update",
			rows: table{row(0, 3, set(colChanged, 6)), row(1, 3, set(colChanged, 6)), row(2, 3, isFresh)}},
		{name: "no replicas after all", shards: alike, lost: true, err: "ranks 0 and 1 hold different states in step 6",
			rows: table{row(0, 3, set(colLive, 6)), row(1, 3, set(colLive, 6), set(colHash, 1)), row(2, 3, isFresh)}},
		{name: "other bufs", shards: each, err: "rank 1 restores 16 bytes, and its state of step 4 has 8",
			rows: table{row(0, 3, own(1, 4)), row(1, 3, own(1, 4), set(colBytes, 16)), row(2, 3, own(1, 4))}},
		{name: "another Every", shards: each, err: "rank 2 and rank 0 call Restore with different values of Options.Every",
			rows: table{row(0, 3), row(1, 3), row(2, 3, set(colEvery, 3))}},
		{name: "another Away", shards: each, err: "different values of Options.Away", rows: table{row(0, 3), row(1, 3, set(colAway, 2)), row(2, 3)}},
		{name: "another Shard", shards: each, err: "different values of Options.Shard", rows: table{row(0, 3), row(1, 3, set(colShards, 2)), row(2, 3)}},
		{name: "other fresh ranks", shards: each, err: "different values of the list of fresh ranks",
			rows: table{row(0, 3), row(1, 3, set(colList, 2)), row(2, 3)}},
		{name: "its own holder", shards: each, err: "no rank can be its own holder",
			rows: table{row(0, 3, set(colAway, 3)), row(1, 3, set(colAway, 3)), row(2, 3, set(colAway, 3))}},
		{name: "device memory", shards: each, err: "rank 1: a Buf is no view of host memory; Options.On copies that of a device", rows: table{row(0, 3), row(1, 3, set(colBytes, badBufs)), row(2, 3)}},
		{name: "no such rank", shards: each, err: "one that is none of 3 ranks", rows: table{row(0, 3), row(1, 3, set(colBytes, badFresh)), row(2, 3)}},
		{name: "after a Shrink without a spare", shards: []int{0, 1}, err: "rank 1 of 2 was rank 2 of 3 before", rows: table{row(0, 2), row(2, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.rows.decide(c.shards)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, c.lost, errors.Is(err, ErrLost), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want.step, got.step)
			if got.step >= 0 {
				require.Equal(t, c.want, got)
			}
		})
	}
}

// A step that one rank lacks is restored where it is in any of the two slots of the others; whatever
// one rank is lost at any point of a Save, some step is whole.
func TestAlwaysWhole(t *testing.T) {
	const n = 3
	// What a rank has at the points of the Save of step 5, which overwrites step 3. The others are at
	// most one point of agreement away: nobody overwrites before all have the step before whole.
	points := []func(r int) []func([]int64){
		func(r int) []func([]int64) { // before it
			return []func([]int64){own(0, 4), held(0, 4, (r+2)%n), own(1, 3), held(1, 3, (r+2)%n), set(colWhole, 4)}
		},
		func(r int) []func([]int64) { // the slot is being overwritten
			return []func([]int64){own(0, 4), held(0, 4, (r+2)%n), set(colWhole, 4)}
		},
		func(r int) []func([]int64) { // copied
			return []func([]int64){own(0, 4), held(0, 4, (r+2)%n), own(1, 5), set(colWhole, 4)}
		},
		func(r int) []func([]int64) { // received
			return []func([]int64){own(0, 4), held(0, 4, (r+2)%n), own(1, 5), held(1, 5, (r+2)%n), set(colWhole, 4)}
		},
	}
	for at := range len(points) * len(points) * len(points) {
		for lost := range n {
			var rows table
			left := at
			for r := range n {
				rows = append(rows, row(r, n, points[left%len(points)](r)...))
				left /= len(points)
			}
			rows[lost] = row(lost, n, isFresh)
			p, err := rows.decide([]int{0, 1, 2})
			require.NoError(t, err, "points %d, rank %d lost", at, lost)
			require.GreaterOrEqual(t, p.step, 4, "points %d, rank %d lost", at, lost)
		}
	}
}

// Parts move in batches whose transfers share no rank.
func TestTransfers(t *testing.T) {
	p := plan{step: 1, from: []source{{0, false, 0}, {2, true, 1}, {2, false, 2}, {2, false, 2}, {0, false, 0}, {0, false, 0}}}
	require.Equal(t, [][]transfer{
		{{source{2, true, 1}, []int{1}}, {source{0, false, 0}, []int{4, 5}}},
		{{source{2, false, 2}, []int{3}}},
	}, p.transfers())
	require.Nil(t, (plan{step: 1, from: []source{{0, false, 0}, {1, false, 1}}}).transfers())
}

// Neighbors are on different hosts wherever that is possible for all.
func TestRingOrder(t *testing.T) {
	for _, c := range []struct {
		places []ccl.Place
		want   []int
	}{
		{[]ccl.Place{{Node: 0, Local: 0}, {Node: 0, Local: 1}, {Node: 0, Local: 2}}, []int{0, 1, 2}},
		{[]ccl.Place{{Node: 0, Local: 0}, {Node: 0, Local: 1}, {Node: 1, Local: 0}, {Node: 1, Local: 1}}, []int{0, 2, 1, 3}},
		{[]ccl.Place{{Node: 0, Local: 0}, {Node: 1, Local: 0}, {Node: 2, Local: 0}, {Node: 0, Local: 1}, {Node: 1, Local: 1}, {Node: 2, Local: 1}}, []int{0, 1, 2, 3, 4, 5}},
		{[]ccl.Place{{Node: 1, Local: 0}, {Node: 0, Local: 0}, {Node: 1, Local: 1}, {Node: 0, Local: 1}}, []int{1, 0, 3, 2}},
	} {
		got := ringOrder(c.places)
		require.Equal(t, c.want, got, "%v", c.places)
		for i, r := range got {
			if next := got[(i+1)%len(got)]; c.places[r].Node == c.places[next].Node && slices.ContainsFunc(c.places, func(p ccl.Place) bool { return p.Node > 0 }) {
				t.Errorf("%v: ranks %d and %d of one host are neighbors", c.places, r, next)
			}
		}
	}
}
