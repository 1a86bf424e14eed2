package elastic

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/quorum"
)

const (
	// answerLimit is how long the store may take for an answer.
	answerLimit = time.Second
	// askAgain is when the store is asked again.
	askAgain = 200 * time.Millisecond
	// sayAgain is how often a side that waits says so.
	sayAgain = time.Minute
)

// noteEnd notes that the loss for which the Comm has failed is certain, if its ranks have met.
func (m *member) noteEnd(cause *ccl.Error) {
	if cause.Certain && m.came.met == m.c && cause.Peer >= 0 && cause.Peer < len(m.met) {
		m.vote.Ended(m.met[cause.Peer].id)
	}
}

// known has newcomers know of the epoch whose ranks they have met.
func (m *member) known(ctx context.Context) error {
	m.vote.Hear(m.said())
	root, some := -1, false
	for r, said := range m.met {
		if some = some || said.epoch == 0; said.epoch != 0 && root < 0 {
			root = r
		}
	}
	if root < 0 || !some {
		return nil
	}
	type epoch struct {
		Name int64
		IDs  []int64
	}
	var mine epoch
	mine.Name, mine.IDs = m.vote.Base()
	theirs, err := ccl.BroadcastValue(ctx, m.c, mine, root)
	if err == nil {
		m.vote.Learn(theirs.Name, theirs.IDs)
	}
	return err
}

// said is what quorum needs of the records.
func (m *member) said() (all []quorum.Said) {
	for _, r := range m.met {
		all = append(all, quorum.Said{ID: r.id, Epoch: r.epoch, Sure: r.sure})
	}
	return all
}

// side are the ids of the ranks that have met.
func (m *member) side() (ids []int64) {
	for _, r := range m.met {
		ids = append(ids, r.id)
	}
	return ids
}

// agree has all ranks that have met, and have the state, go on together, or finds out that others do: errCutOff.
func (m *member) agree(ctx context.Context) error {
	if m.came.agreed == m.c { // they compare bits
		return nil
	}
	side := m.side()
	for try, said := int64(0), (time.Time{}); ; try++ {
		// whether all agree, and are of the same epoch
		name, may := m.vote.Epoch(), m.vote.May(side)
		all, next := []int64{bit(may), name, ^name}, m.met[0].token^try
		if may {
			m.vote.Try(next, side)
		}
		if err := ccl.AllReduce(ctx, m.c, all, all, ccl.Min); err != nil {
			return err
		}
		if all[0] == 1 && all[1] == ^all[2] {
			for _, past := range m.vote.Adopt(next, side) {
				m.tell(func(ctx context.Context, s quorum.Store) error { return quorum.Tell(ctx, s, past) })
			}
			m.came.agreed = m.c
			return nil
		}
		if may {
			m.vote.Drop()
		}
		if m.opt.Store == nil { // those without one cannot come back
			return fmt.Errorf("%w, if there are any: %d ranks are here, others that are more may go on, and there is no store to ask",
				errCutOff, len(side))
		}
		if m.c.Rank() == 0 && time.Since(said) >= sayAgain {
			said = time.Now()
			m.opt.Log.Warn(fmt.Sprintf("elastic: %d ranks are here, and others that are more may go on: these wait until the store knows",
				len(side)))
		}
		if try > 0 {
			select {
			case <-ctx.Done():
				if len(side) == 1 { // nobody else must hear of it
					return ctx.Err()
				}
			case <-m.c.Done():
			case <-time.After(askAgain):
			}
		}
		if err := m.ask(ctx, side); err != nil {
			return err
		}
	}
}

// ask has each rank of side, all of this Comm, ask the store once, and then hear what the others know.
func (m *member) ask(ctx context.Context, side []int64) error {
	short, cancel := context.WithTimeout(ctx, answerLimit)
	others, err := m.vote.Ask(short, m.opt.Store, m.said(), m.c.Rank() == 0)
	if n, failed := m.opt.Store.Add(short, endedKey, 0); failed == nil && n > 0 {
		others = true
	}
	cancel()
	if err != nil && ctx.Err() == nil {
		m.opt.Log.Info("elastic: the store does not say whether other ranks go on", "why", err)
	}
	const words = 3
	all := make([]int64, words*len(side))
	if err := ccl.AllGather(ctx, m.c, all, []int64{bit(others), m.vote.Epoch(), bit(m.vote.Sure())}); err != nil {
		return err
	}
	for r := range m.met {
		w := all[words*r:]
		if m.met[r].epoch, m.met[r].sure = w[1], w[2] != 0; w[0] != 0 {
			others = true
		}
	}
	if others {
		return fmt.Errorf("%w: they were more than half of the ranks, or the first of those that were not", errCutOff)
	}
	return m.known(ctx)
}

// tell says something in the store, as soon as that answers.
func (m *member) tell(say func(context.Context, quorum.Store) error) {
	if m.opt.Store == nil {
		return
	}
	m.behind.Go(func() {
		for m.behind.running.Err() == nil {
			short, cancel := context.WithTimeout(m.behind.running, answerLimit)
			err := say(short, m.opt.Store)
			if cancel(); err == nil {
				return
			}
			select {
			case <-m.behind.running.Done():
			case <-time.After(askAgain):
			}
		}
	})
}

// leaves says in the store that this rank, which ends, goes on no more: half of the others may wait for that.
func (m *member) leaves(ctx context.Context) {
	if m.opt.Store == nil {
		return
	}
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	if err := m.vote.Leave(short, m.opt.Store); err != nil {
		m.opt.Log.Info("elastic: the store does not hear that this rank ends", "why", err)
	}
}
