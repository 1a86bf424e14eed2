package mirror

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Restore gives every rank of c its state of the last step that all of them have, in bufs, and
// returns that step: go on with the next one. It returns -1 if there is none, because no Save was
// ever done on all ranks: then all ranks begin anew, from whatever they begin a run from.
//
// All ranks of c must call it, and make no other call on c meanwhile. c has the same size and the
// same numbers as before, and the ranks in fresh are new: they have nothing, and get the state that
// their predecessors had. All ranks give the same list. The first Restore of a run has no fresh
// ranks and returns -1. bufs are views of all that an update changes, and of what it depends on.
//
// An error is the same on all ranks, but of Options.On: c has failed for the others. If c fails,
// another Restore on the next Comm goes on from the same states. The Mirror makes a Comm of its own by
// Split, and begins to mirror what it has restored, so that fresh ranks, too, are held and hold.
func (m *Mirror) Restore(ctx context.Context, c *ccl.Comm, fresh []int, bufs ...ccl.Buf) (step int, err error) {
	m.detach()
	m.ready = false
	n := c.Size()
	m.shards = make([]int, n)
	for r := range n {
		m.shards[r] = r
		if m.o.Shard != nil {
			m.shards[r] = m.o.Shard(r)
		}
	}
	m.at(c.Rank(), -1, "restore")
	rows := make([]int64, n*columns)
	if err := ccl.AllGather(ctx, c, rows, m.row(c, fresh, bufs)); err != nil {
		return -1, err
	}
	t := table(slices.Collect(slices.Chunk(rows, columns)))
	p, err := t.decide(m.shards)
	if err != nil {
		return -1, err
	}
	m.at(c.Rank(), p.step, "decided")
	switch {
	case p.step < 0:
		m.forget()
	case replicated(m.shards):
		err = m.give(ctx, c, p, bufs)
	default:
		err = m.fill(ctx, c, p, bufs)
	}
	if err != nil {
		return -1, err
	}
	m.at(c.Rank(), p.step, "restored")
	m.rank, m.size = c.Rank(), n
	if n > 1 && !replicated(m.shards) {
		places := make([]ccl.Place, n)
		for r, row := range t {
			places[r] = ccl.Place{Node: int(row[colNode]), Local: int(row[colLocal])}
		}
		m.order = ringOrder(places)
		if m.ring, err = c.SplitWith(ctx, 0, slices.Index(m.order, c.Rank()), unwatched); err != nil {
			return -1, err
		}
	}
	m.ready = true
	if p.step >= 0 && !replicated(m.shards) {
		m.again(t, p.step)
	}
	return p.step, nil
}

// give brings the furthest state to the ranks that are not at it. What a rank knows of its own
// stays as it is until nothing can fail any more.
func (m *Mirror) give(ctx context.Context, c *ccl.Comm, p plan, bufs []ccl.Buf) error {
	var data []byte
	err := move(ctx, c, p, &m.closing, func(s source) (_ []byte, err error) {
		if s.rank == c.Rank() {
			return m.bufs.Pack(nil, bufs)
		}
		n, err := m.bufs.Len(bufs)
		data = make([]byte, n)
		return data, err
	})
	if err != nil {
		return err
	}
	if p.from[c.Rank()].rank != c.Rank() {
		err = m.bufs.Unpack(bufs, data)
	}
	hash := int64(0)
	if err == nil {
		hash, err = m.bufs.Hash(bufs)
	}
	if err != nil {
		c.Abort(err) // so that no rank goes on without this one
		return err
	}
	m.live = live{p.step, hash}
	return nil
}

// fill brings its own part of the step to every rank, and copies it into bufs.
func (m *Mirror) fill(ctx context.Context, c *ccl.Comm, p plan, bufs []ccl.Buf) error {
	r := c.Rank()
	mine := m.find(source{rank: r, owner: r}, p.step)
	incoming := part{step: p.step, owner: r}
	err := move(ctx, c, p, &m.closing, func(s source) ([]byte, error) {
		if s.rank == r {
			return m.find(s, p.step).data, nil
		}
		n, err := m.bufs.Len(bufs)
		incoming.data = make([]byte, n)
		return incoming.data, err
	})
	if err != nil {
		return err
	}
	if mine == nil { // beside what it holds of that step
		i := slices.IndexFunc(m.slots[:], func(s slot) bool { return s.held.step == p.step })
		mine = &m.slots[max(i, 0)].own
		*mine = incoming
	}
	if err = m.bufs.Unpack(bufs, mine.data); err != nil {
		c.Abort(err) // so that no rank goes on without this one
	}
	return err
}

// find returns a part of a step that this rank has, or nil.
func (m *Mirror) find(s source, step int) *part {
	for i := range m.slots {
		p := &m.slots[i].own
		if s.held {
			p = &m.slots[i].held
		}
		if p.step == step && p.owner == s.owner {
			return p
		}
	}
	return nil
}

// again mirrors what was restored: only what a holder lacks, by what all ranks had, and beside the
// states that are held already, where there is room: see swap. A state in the other slot stays as it
// is: where the step is not whole yet, that is what a further loss goes back to. What ranks have of
// later steps is of a course that ends here.
func (m *Mirror) again(t table, step int) {
	m.last = slices.IndexFunc(m.slots[:], func(s slot) bool { return s.own.step == step })
	for i := range m.slots {
		s := &m.slots[i]
		if s.own.step > step {
			s.own.step, s.whole = -1, false
		}
		if s.held.step > step {
			s.held.step = -1
		}
	}
	send := false
	if m.ring != nil {
		holder := m.order[(m.ring.Rank()+m.o.Away)%m.size]
		send = t.bytes(source{rank: holder, held: true, owner: m.rank}, step) < 0
	}
	m.begin(send)
}

// transfer is a part that goes from one rank to others.
type transfer struct {
	from source
	to   []int
}

// transfers returns what has to move, in batches of transfers that have no rank in common.
func (p plan) transfers() (batches [][]transfer) {
	var all []transfer
	for r, s := range p.from {
		if s.rank == r && !s.held {
			continue
		}
		i := slices.IndexFunc(all, func(t transfer) bool { return t.from == s })
		if i < 0 {
			i, all = len(all), append(all, transfer{from: s})
		}
		all[i].to = append(all[i].to, r)
	}
	busy := []map[int]bool{}
	for _, t := range all {
		at := 0
		for at < len(busy) && (busy[at][t.from.rank] || slices.ContainsFunc(t.to, func(r int) bool { return busy[at][r] })) {
			at++
		}
		if at == len(busy) {
			busy, batches = append(busy, map[int]bool{}), append(batches, nil)
		}
		batches[at] = append(batches[at], t)
		for _, r := range append([]int{t.from.rank}, t.to...) {
			busy[at][r] = true
		}
	}
	return batches
}

// move makes the transfers of p, each on a Comm of its ranks alone: a Comm of few ranks has larger
// pipes. part returns the memory of the part on its source, and where it goes on another rank.
func move(ctx context.Context, c *ccl.Comm, p plan, closing *sync.WaitGroup, part func(source) ([]byte, error)) error {
	for _, batch := range p.transfers() {
		color, key := -1, 0
		for i, t := range batch {
			if t.from.rank == c.Rank() {
				color = i
			} else if slices.Contains(t.to, c.Rank()) {
				color, key = i, 1
			}
		}
		few, err := c.SplitWith(ctx, color, key, unwatched)
		if err != nil {
			return err
		}
		if color < 0 {
			continue
		}
		data, err := part(batch[color].from)
		if err == nil {
			err = ccl.Broadcast(ctx, few, data, 0)
		}
		if err != nil {
			few.Abort(err)
			end(c, err)
		}
		closing.Go(func() { _ = few.Close() })
		if err != nil {
			return err
		}
	}
	return nil
}

// end fails c, whose ranks would wait for those of the transfer that failed with err.
func end(c *ccl.Comm, err error) {
	if !errors.Is(err, ccl.ErrRankLost) || !same.Fails(c) {
		c.Abort(err)
	}
}
