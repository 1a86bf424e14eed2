package mirror

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// What a rank tells all others at the beginning of Restore. All decide by the whole table, so they
// decide the same.
const (
	colEvery   = iota
	colAway    // Options.Away
	colShards  // a hash of Options.Shard of all ranks
	colList    // a hash of the list of fresh ranks
	colFresh   // 1 if this rank is in it
	colBytes   // of its bufs; badBufs and badFresh for what cannot be
	colNode    // Place
	colLocal   // Place
	colRank    // in the last Restore; -1 before the first
	colSize    // of the Comm of the last Restore
	colWhole   // the last step that all ranks had, as far as this rank knows
	colLive    // the step of its bufs, where they are not copied
	colHash    // their hash
	colChanged // the step whose state they were, where they have changed since
	colOwn     // first of colOwn, colOwnBytes, colHeld, colHeldOwner, colHeldBytes
	colOwnBytes
	colHeld
	colHeldOwner
	colHeldBytes
	columns = colOwn + 2*perSlot
	perSlot = 5
)

const (
	badBufs  = -1
	badFresh = -2
)

// row returns what this rank tells, in a Restore on c.
func (m *Mirror) row(c *ccl.Comm, fresh []int, bufs []ccl.Buf) []int64 {
	row := make([]int64, columns)
	p := c.Place()
	row[colEvery], row[colAway], row[colShards], row[colList] = int64(m.o.Every), int64(m.o.Away),
		raw.HashInts(m.shards), raw.HashInts(fresh)
	row[colNode], row[colLocal], row[colRank], row[colSize] = int64(p.Node), int64(p.Local), int64(m.rank), int64(m.size)
	n, err := m.bufs.Len(bufs)
	row[colBytes] = int64(n)
	if err != nil {
		row[colBytes] = badBufs
	}
	for _, f := range fresh {
		if f < 0 || f >= c.Size() {
			row[colBytes] = badFresh
		}
	}
	row[colWhole], row[colLive], row[colChanged] = -1, -1, -1
	if slices.Contains(fresh, c.Rank()) {
		row[colFresh] = 1
		m.forget()
	}
	if m.live.step >= 0 && err == nil {
		hash, err := m.bufs.Hash(bufs)
		if err == nil && hash == m.live.hash {
			row[colLive], row[colHash] = int64(m.live.step), hash
		} else {
			row[colChanged] = int64(m.live.step)
		}
	}
	for i, s := range m.slots {
		at := colOwn + perSlot*i
		row[at], row[at+1] = int64(s.own.step), int64(len(s.own.data))
		row[at+2], row[at+3], row[at+4] = int64(s.held.step), int64(s.held.owner), int64(len(s.held.data))
		if s.whole {
			row[colWhole] = max(row[colWhole], int64(s.own.step))
		}
	}
	return row
}

// table has a row of each rank.
type table [][]int64

// plan says how all ranks come to the state of one step.
type plan struct {
	step int // -1: no step was ever whole; all begin anew
	// from says, by rank, where its state is.
	from []source
}

// source is where the state of a rank is: with the rank that owns it, with a replica, or held.
type source struct {
	rank  int
	held  bool
	owner int // the rank whose state it is; a replica's own where it comes from a replica
}

// decide finds the last step of which the state of every rank is somewhere.
func (t table) decide(shards []int) (plan, error) {
	if err := t.check(shards); err != nil {
		return plan{}, err
	}
	var p plan
	var err error
	if replicated(shards) {
		p, err = t.furthest()
	} else {
		p, err = t.newest(shards)
	}
	if err != nil || p.step < 0 {
		return p, err
	}
	for r, s := range p.from {
		if have := t.bytes(s, p.step); have != t[r][colBytes] {
			return plan{}, fmt.Errorf("mirror: rank %d restores %d bytes, and its state of step %d has %d", r, t[r][colBytes],
				p.step, have)
		}
	}
	return p, nil
}

// replicated reports whether all ranks hold the same state, and there are several.
func replicated(shards []int) bool {
	return len(shards) > 1 && !slices.ContainsFunc(shards, func(s int) bool { return s != shards[0] })
}

// check finds what differs between ranks, or cannot be.
func (t table) check(shards []int) error {
	n := len(t)
	for r, row := range t {
		for col, what := range map[int]string{colEvery: "Options.Every", colAway: "Options.Away",
			colShards: "Options.Shard", colList: "the list of fresh ranks"} {
			if row[col] != t[0][col] {
				return fmt.Errorf("mirror: rank %d and rank 0 call Restore with different values of %s", r, what)
			}
		}
	}
	if t[0][colEvery] < 0 || t[0][colAway] < 0 || n > 1 && t[0][colAway]%int64(n) == 0 {
		return fmt.Errorf("mirror: Options have Every %d and Away %d with %d ranks: no rank can be its own holder",
			t[0][colEvery], t[0][colAway], n)
	}
	for r, row := range t {
		switch {
		case row[colBytes] == badBufs:
			return fmt.Errorf("mirror: rank %d: %w; Options.On copies that of a device", r, raw.ErrDevice)
		case row[colBytes] == badFresh:
			return fmt.Errorf("mirror: the list of fresh ranks has one that is none of %d ranks", n)
		case row[colFresh] == 0 && row[colRank] >= 0 && (row[colRank] != int64(r) || row[colSize] != int64(n)):
			return fmt.Errorf("mirror: rank %d of %d was rank %d of %d before: Restore takes a Comm with the same numbers; with another one, go on from a checkpoint and a New Mirror",
				r, n, row[colRank], row[colSize])
		}
	}
	return nil
}

// bytes returns the length of a part.
func (t table) bytes(s source, step int) int64 {
	row := t[s.rank]
	if row[colLive] == int64(step) {
		return row[colBytes]
	}
	for at := colOwn; at < columns; at += perSlot {
		switch {
		case !s.held && row[at] == int64(step):
			return row[at+1]
		case s.held && row[at+2] == int64(step) && row[at+3] == int64(s.owner):
			return row[at+4]
		}
	}
	return -1
}

// furthest decides where all ranks hold the same state, each that of the step that it is at. The
// ranks at the furthest step have what the others need.
func (t table) furthest() (plan, error) {
	step, changed := int64(-1), int64(-1)
	first := 0
	for r, row := range t {
		if row[colLive] > step {
			step, first = row[colLive], r
		}
		changed = max(changed, row[colChanged])
	}
	if step < 0 && changed >= 0 {
		return plan{}, fmt.Errorf("mirror: no rank has the state of step %d as Save has seen it: Save stands directly after the update: %w", changed, ErrLost)
	}
	p := plan{step: int(step), from: make([]source, len(t))}
	for r, row := range t {
		p.from[r] = source{rank: first, owner: first}
		if step >= 0 && row[colLive] == step {
			p.from[r] = source{rank: r, owner: r}
			if row[colHash] != t[first][colHash] {
				return plan{}, fmt.Errorf("mirror: ranks %d and %d hold different states in step %d, though they are replicas by Options.Shard: %w", first, r, step, ErrLost)
			}
		}
	}
	return p, nil
}

// newest decides where states are copied.
func (t table) newest(shards []int) (plan, error) {
	var steps []int64
	whole := int64(-1)
	for _, row := range t {
		if row[colFresh] == 0 {
			whole = max(whole, row[colWhole])
		}
		for at := colOwn; at < columns; at += perSlot {
			steps = append(steps, row[at], row[at+2])
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	missing, of := -1, int64(math.MaxInt64)
	for _, step := range slices.Backward(steps) {
		if step < 0 {
			break
		}
		p, hole := t.cover(step, shards)
		if hole < 0 {
			return p, nil
		}
		if step >= whole {
			missing, of = hole, step
		}
	}
	if whole < 0 {
		return plan{step: -1}, nil
	}
	return plan{}, fmt.Errorf("mirror: the state of rank %d in step %d is nowhere: the rank and its holder were lost at the same time: %w", missing, of, ErrLost)
}

// cover finds the state of each rank in a step; hole is the first rank whose state is nowhere, or -1.
func (t table) cover(step int64, shards []int) (p plan, hole int) {
	p = plan{step: int(step), from: make([]source, len(t))}
	for r := range t {
		p.from[r] = source{rank: r, owner: r}
		found := t.bytes(p.from[r], int(step)) >= 0
		for q := 0; q < len(t) && !found; q++ {
			if shards[q] == shards[r] {
				p.from[r] = source{rank: q, owner: q}
				found = t.bytes(p.from[r], int(step)) >= 0
			}
		}
		for q := 0; q < len(t) && !found; q++ {
			p.from[r] = source{rank: q, owner: r, held: true}
			found = t.bytes(p.from[r], int(step)) >= 0
		}
		if !found {
			return plan{}, r
		}
	}
	return p, -1
}
