package elastic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/quorum"
	"github.com/goccl/goccl/train/internal/raw"
)

// member is this process in the job.
//
// Its ranks are in step: after each meeting (meet.go) all have the same round, and either nobody has
// begun it, or some have. In the first case all begin it, by a look for newcomers and Local. In the
// second those that have begun it end that, and all come to Share. So whatever is lost or taken in,
// all ranks make the same calls on a Comm: GrowAll once a round if all are there when it begins, then
// the meetings of new Comms, then those of Share.
type member struct {
	job   *Job
	opt   ccl.Options
	views raw.Views
	bytes int64 // of State

	c       *ccl.Comm
	record  record                          // of this rank, which it gives in a meeting
	met     []record                        // of the last meeting
	came    struct{ met, agreed *ccl.Comm } // the last ones whose ranks have met, and have agreed to go on
	vote    quorum.Rank
	back    bool  // it has been in the job before
	workers int   // that have begun the round
	kept    int   // see Round
	look    int64 // the round from which on the store is asked again who waits
	dark    int64 // for how many rounds it was not asked, as it did not answer

	behind struct { // what goes on beside all this
		sync.WaitGroup
		running context.Context // until Run returns
	}
}

// newID tells processes, and Comms, from each other.
func newID() int64 { return rand.Int64() }

// train makes rounds until all are done.
func (m *member) train(ctx context.Context) error {
	err := m.meet(ctx, nil)
	for {
		if err != nil {
			if err = m.mend(ctx, err, nil); err != nil {
				return err
			}
		}
		switch {
		case m.job.Rounds > 0 && m.record.round >= int64(m.job.Rounds):
			if err = m.end(ctx); err == nil {
				return nil
			}
			continue
		case !m.record.begun && !m.record.idle:
			var local error
			if local, err = m.work(ctx); local != nil {
				return local
			}
		}
		if err == nil {
			err = m.share(ctx)
		}
	}
}

// work begins a round: Local, and beside it what tend does. local is why Local has failed, if no lost rank is: then
// there is no result, whatever becomes of the Comm.
func (m *member) work(ctx context.Context) (local, err error) {
	m.record.begun, m.record.means, m.workers, m.kept = true, 0, m.c.Size(), 0
	n := int(m.record.round)
	worked, tended := make(chan struct{}), make(chan error, 1)
	go func() { tended <- m.tend(ctx, worked) }()
	if m.job.Local != nil {
		local = m.job.Local(ctx, n)
	}
	close(worked)
	err = <-tended
	if of := (*ccl.Error)(nil); errors.As(local, &of) {
		return nil, local
	}
	return local, err
}

// tend takes newcomers in, and mends the Comm if a rank is lost, until worked is closed: then Local has ended.
func (m *member) tend(ctx context.Context, worked <-chan struct{}) error {
	err := m.grow(ctx, worked)
	for {
		if err != nil {
			if err = m.mend(ctx, err, worked); err != nil {
				return err
			}
		}
		select {
		case <-worked:
			return nil
		case <-m.c.Done():
			err = m.c.Err()
		}
	}
}

// grow takes in all that wait. All ranks call it when a round begins.
func (m *member) grow(ctx context.Context, worked <-chan struct{}) error {
	n, verify := m.record.round, m.job.Verify
	next, lacks := m.c, func(r record) bool { return !r.store }
	if m.job.Most > m.c.Size() && !slices.ContainsFunc(m.met, lacks) && n >= m.look {
		var err error
		next, err = ccl.GrowAll(ctx, m.c, m.job.Most)
		switch {
		case errors.Is(err, ccl.ErrBackend) && m.c.Err() == nil: // on all ranks
			m.dark = min(2*m.dark+1, mostDark)
			m.look = n + 1 + m.dark
			if m.c.Rank() == 0 {
				m.opt.Log.Warn(fmt.Sprintf("elastic: nobody can be taken in before round %d", m.look), "why", err)
			}
			next = m.c
		case err != nil:
			return err
		default:
			m.dark = 0
		}
	}
	if next == m.c {
		if verify > 0 && n%int64(verify) == 0 {
			return m.meet(ctx, worked)
		}
		return nil
	}
	m.replace(next)
	return m.meet(ctx, worked)
}

// mostDark is for how many rounds a store that has not answered is not asked.
const mostDark = 63

// replace goes on with another Comm.
func (m *member) replace(next *ccl.Comm) {
	old := m.c
	m.c = next
	m.behind.Go(func() { old.Close() }) // which may take a moment
}

// share ends a round.
func (m *member) share(ctx context.Context) error {
	r := &Round{N: int(m.record.round), Comm: m.c, Workers: m.workers, Idle: m.record.idle, kept: m.kept}
	err := m.job.Share(ctx, r)
	if err != nil {
		m.record.means = int64(max(r.means-1, 0)) // the last one has failed, or what came after it
		return err
	}
	m.record.round++
	m.record.begun, m.record.idle, m.record.means = false, false, 0
	return nil
}

// end is the end of the job, once all ranks have come to it. Rank 0 tells those that wait; if it is lost before it has,
// all others do.
func (m *member) end(ctx context.Context) error {
	if err := ccl.Barrier(ctx, m.c); err != nil && !errors.Is(err, ccl.ErrClosed) { // who has closed has been here
		return err
	}
	if m.c.Rank() == 0 {
		m.sayOver(ctx)
	}
	if err := ccl.Barrier(ctx, m.c); err != nil && !errors.Is(err, ccl.ErrClosed) && m.c.Rank() > 0 {
		m.sayOver(ctx)
	}
	return nil
}

// sayOver tells the store that the job is over, within half of the time that the others wait for it.
func (m *member) sayOver(ctx context.Context) {
	if m.opt.Store == nil {
		return
	}
	limit := goodbye
	if m.opt.Timeout > 0 {
		limit = min(limit, m.opt.Timeout/2)
	}
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_, err := m.opt.Store.Add(short, endedKey, 1)
	if err = errors.Join(err, m.opt.Store.Set(short, overKey, nil)); err != nil {
		m.opt.Log.Warn("elastic: processes that wait are not told that the job has ended", "why", err)
	}
}

// mend goes on with the ranks that are left. err is what a call has returned; mend returns it if it is not
// about other ranks. worked is closed once Local has ended, nil where that does not run.
func (m *member) mend(ctx context.Context, err error, worked <-chan struct{}) error {
	for err != nil {
		cause := m.lost(ctx)
		if cause == nil {
			return err
		}
		next, failed := m.c.Shrink(ctx)
		var e *ccl.Error
		switch {
		case errors.As(failed, &e) && (e.Code == ccl.ErrBackend || e.Code == ccl.ErrRankLost && e.Peer == m.c.Rank()):
			if next, err = m.alone(ctx, failed); err != nil {
				return err
			}
		case failed != nil:
			return failed
		}
		m.opt.Log.Info(fmt.Sprintf("elastic: %d of %d ranks are left", next.Size(), m.c.Size()), "why", cause)
		m.noteEnd(cause)
		m.replace(next)
		if err = m.meet(ctx, worked); err == nil {
			return nil
		}
		if errors.Is(err, errCutOff) {
			return err
		}
	}
	return nil
}

// alone is a Comm of this rank alone, which the others have given up, if it has a vote: it may be the only one
// that has the state. Else, or if that cannot be had, the rank is cut off.
func (m *member) alone(ctx context.Context, why error) (*ccl.Comm, error) {
	if !m.vote.Votes() || m.opt.Store == nil {
		return nil, fmt.Errorf("%w: %w", errCutOff, why)
	}
	c, err := ccl.Alone(ctx, &m.opt)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w, and %w", errCutOff, why, err)
	}
	return c, err
}

// lost is why the Comm has failed, if the others can go on, or nil.
func (m *member) lost(ctx context.Context) *ccl.Error {
	var e *ccl.Error
	if ctx.Err() != nil || !errors.As(m.c.Err(), &e) {
		return nil
	}
	switch e.Code {
	case ccl.ErrRankLost, ccl.ErrClosed, ccl.ErrCanceled, ccl.ErrAborted:
		return e
	}
	return nil
}
