package elastic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// record is what a rank says of itself in a meeting.
type record struct {
	id    int64 // of the process
	token int64 // a new one each time: that of rank 0 names the Comm
	in    bool  // it has the state of the job, or had that of an earlier round
	late  bool  // it has come to a job that ran
	store bool  // it has a store
	round int64 // how many rounds its state has behind it
	begun bool  // it has begun the next, and has the result of Local, or will
	idle  bool  // it has come while others had begun
	means int64 // calls of Mean in that round that have ended here
	hash  int64 // of the state
	bytes int64 // of the state
	epoch int64 // what quorum.Rank has as Epoch
	sure  bool  // what quorum.Rank has as Sure
}

// words is how many a record has.
const words = 13

func (r record) append(w []int64) []int64 {
	return append(w, r.id, r.token, bit(r.in), bit(r.late), bit(r.store), r.round, bit(r.begun), bit(r.idle), r.means,
		r.hash, r.bytes, r.epoch, bit(r.sure))
}

func recordOf(w []int64) record {
	return record{w[0], w[1], w[2] != 0, w[3] != 0, w[4] != 0, w[5], w[6] != 0, w[7] != 0, w[8], w[9], w[10], w[11],
		w[12] != 0}
}

func bit(x bool) int64 {
	if x {
		return 1
	}
	return 0
}

// verdict is what comes of a meeting. It follows from the records alone, so all ranks come to the same.
type verdict struct {
	state   record // the state with which all go on
	sources []int  // ranks that have it
	need    []int  // ranks that must get it
	alien   []int  // ranks whose state has another size: they are of another program
	begun   []bool // by rank: it has begun the round, with the right state
	workers int    // so many have
	kept    int    // so many calls of Mean have ended on all
}

// judge finds the furthest state, that of the most ranks if there are several, of the lowest rank if those are as
// many. A rank that is in the job is before all newcomers.
func judge(all []record) (v verdict) {
	best := 0
	further := func(a, b record) bool { return a.in && !b.in || a.in == b.in && a.round > b.round }
	type state struct {
		in                 bool
		round, hash, bytes int64
	}
	count := map[state]int{}
	of := func(r int) state { return state{all[r].in, all[r].round, all[r].hash, all[r].bytes} }
	for r := range all {
		count[of(r)]++
	}
	has := func(r int) int { return count[of(r)] }
	for r := range all {
		if further(all[r], all[best]) || !further(all[best], all[r]) && has(r) > has(best) {
			best = r
		}
	}
	v.state, v.begun, v.kept = all[best], make([]bool, len(all)), -1
	for r, o := range all {
		switch {
		case o.bytes != v.state.bytes:
			v.alien = append(v.alien, r)
		case o.hash != v.state.hash:
			v.need = append(v.need, r)
		default:
			v.sources = append(v.sources, r)
			if v.begun[r] = o.in == v.state.in && o.round == v.state.round && o.begun; v.begun[r] {
				v.workers++
				if v.kept < 0 || int(o.means) < v.kept {
					v.kept = int(o.means)
				}
			}
		}
	}
	if v.workers < len(all) { // another one has none of these results
		v.kept = 0
	}
	return v
}

// meet brings all ranks of the Comm to the same state. worked is as mend has it.
func (m *member) meet(ctx context.Context, worked <-chan struct{}) error {
	v, err := m.gather(ctx)
	if err != nil {
		return err
	}
	if err := m.known(ctx); err != nil {
		return err
	}
	if err := m.settle(ctx, v, worked); err != nil {
		return err
	}
	return m.agree(ctx) // now they have the state: before that newcomers have no vote
}

// gather has all ranks give their records.
func (m *member) gather(ctx context.Context) (v verdict, err error) {
	r := &m.record
	r.token, r.store, r.bytes, r.epoch = newID(), m.opt.Store != nil, m.bytes, m.vote.Epoch()
	r.sure = m.vote.Sure()
	if r.hash, err = m.views.Hash(m.job.State); err != nil {
		return v, err
	}
	all := make([]int64, words*m.c.Size())
	if err := ccl.AllGather(ctx, m.c, all, r.append(nil)); err != nil {
		return v, err
	}
	m.met = m.met[:0]
	for w := range slices.Chunk(all, words) {
		m.met = append(m.met, recordOf(w))
	}
	m.came.met = m.c
	return judge(m.met), nil
}

// settle carries out what v says.
func (m *member) settle(ctx context.Context, v verdict, worked <-chan struct{}) error {
	me := m.c.Rank()
	if slices.Contains(v.alien, me) {
		return fmt.Errorf("elastic: the state of this rank has %d bytes, and that of the job %d: it is another program, or has other flags",
			m.bytes, v.state.bytes)
	}
	if !v.state.in && slices.ContainsFunc(m.met, func(r record) bool { return r.late }) {
		if !m.vote.May(m.side()) { // those that had the state may go on
			return fmt.Errorf("%w: none of these ranks has the state", errCutOff)
		}
		return errors.New("elastic: all ranks that had the state are lost: start the job again, from a checkpoint if there is one")
	}
	if len(v.need) > 0 {
		if slices.Contains(v.need, me) {
			if m.record.in && m.record.round == v.state.round {
				m.opt.Log.Warn(fmt.Sprintf("elastic: rank %d: the state after round %d differs from that of most ranks, and is replaced by theirs",
					me, m.record.round))
			}
			if worked != nil { // Local reads the state
				<-worked
			}
		}
		if err := m.restore(ctx, v); err != nil {
			return err
		}
	}
	m.record.in, m.record.round = true, v.state.round
	m.record.begun = v.begun[me]
	m.record.idle = v.workers > 0 && !v.begun[me]
	m.workers, m.kept, m.dark, m.look = v.workers, v.kept, 0, 0
	return nil
}
