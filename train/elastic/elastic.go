// Package elastic trains with ranks that come and go: on spot machines, between sites, at home.
//
// A program gives what all ranks have alike, a round's own work, and the exchange that ends the
// round. Run does the rest. It joins the job, gives newcomers the state, and goes on with those that
// are left after a loss. The program sees neither Shrink nor Grow:
//
//	err := elastic.Run(ctx, &elastic.Job{
//		State: []ccl.Buf{ccl.BufOf(params)},
//		Most:  16,
//		Local: func(ctx context.Context, round int) error {
//			return train(ctx, params, delta) // alone, at the speed of this machine
//		},
//		Share: func(ctx context.Context, r *elastic.Round) error {
//			if err := elastic.Mean(ctx, r, sum, delta); err != nil {
//				return err
//			}
//			apply(params, sum)
//			return nil
//		},
//	})
//
// The processes find each other in the store that GOCCL_HALL or ccl.Options.Store names. The first
// one starts a job, of one rank if need be; all others join the job that runs.
//
// A round's local work and the network take turns as little as possible. While the program computes,
// Run looks for newcomers, takes them in, gives them the state, and mends a Comm that has lost a
// rank. So all this costs a round only what it takes longer than the local work. The local work of a
// rank is not made again after a loss: only the exchange is.
//
// # State
//
// All ranks have the same bits in Job.State between two rounds. Run compares a hash of them whenever
// the ranks change. A rank whose state differs from that of most others gets theirs: a newcomer, a
// rank that missed the last exchange, or one whose memory is damaged. Each of the others sends a
// part, and the hash of the whole is checked. The hash finds accidents. It is no proof against a
// peer that lies on purpose; what such a peer adds to a sum nobody can tell anyway.
//
// # Partitions
//
// If the network falls apart, at most one side goes on: the one with more than half of the ranks that
// have the state and have not certainly ended, or with the first of exactly half. It needs no store. A
// newcomer has no vote before it has the state and all have agreed to that: however many there are,
// they cannot give up the last rank that has it. All others wait for the store, however long: if that
// says that others go on, they come back as newcomers, with the others' state. If it knows that most
// ranks are such that wait, or have left, no side can have the most, and the first one goes on; a
// round that others had ended, and it had not, is made again. No clock decides: what stands still, or
// is out of reach, counts as going on. So where half or more of the ranks are out of reach for good,
// without a sign that they ended, the rest waits until ctx ends: start the job again from a
// checkpoint.
package elastic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/quorum"
)

// Job is what a program trains. All ranks have the same, apart from On, Options and Round.
type Job struct {
	// State holds what all ranks have alike between two rounds, such as parameters and moments. Share
	// changes it, and Run where this rank must get the others' state.
	State []ccl.Buf
	// Round is the number of rounds that State has behind it when Run is called: 0, or that of a
	// checkpoint. A job starts with the furthest state of its first ranks. Newcomers get the state of
	// the job whatever they bring.
	Round int
	// Local does what a rank does alone in a round. It may read State and must not change it. It runs
	// beside other work of Run. If Local is nil, there is none.
	Local func(ctx context.Context, round int) error
	// Share exchanges the results of the round and changes State. It must make its calls on r.Comm
	// before it changes State, and must change State equally on all ranks. After a loss it is called
	// again, with the ranks that are left; so it must not spoil what Local has made.
	Share func(ctx context.Context, r *Round) error
	// Most is the most ranks that there may be. 0 and less: nobody is taken in.
	Most int
	// Rounds ends the job once State has so many rounds behind it. 0: only ctx or an error ends it.
	Rounds int
	// Verify compares the hash of State on all ranks before each round that it divides, and not only when
	// the ranks change. 0: only then.
	Verify int
	// On copies State that is in the memory of a device.
	On ckpt.Copier
	// Options are those of Join. Spares must be 0. Its Store is that of GOCCL_HALL if it is nil.
	Options *ccl.Options
}

// Round is a round in which ranks share their results.
type Round struct {
	// N is the number of rounds that State has behind it.
	N int
	// Comm is that of all ranks. It may be another one in each call of Share.
	Comm *ccl.Comm
	// Workers is how many ranks bring the result of Local. The others have come in this round.
	Workers int
	// Idle says that this rank is not one of the Workers. It takes part in all calls, with nothing to add.
	Idle bool

	means, kept int // calls of Mean that have been made; the first ones, whose results all ranks still have
}

// ErrEnded is what Run returns in a process that waited to be taken in when the job ended.
var ErrEnded = errors.New("elastic: the job has ended without this process")

// Mean writes to dst the mean of src over the Workers of the round. The bits of dst are the same on all
// ranks. An Idle rank's src is ignored. dst must not overlap src, since Share may be called again.
//
// If Share calls Mean several times, and a rank is lost, those calls that have ended on all ranks are not made
// again: dst keeps the mean that the lost rank was part of. That is sound since dst has the same bits
// on all ranks that are left, which they agree on before. So a large state is best shared in several
// calls. Single parts of one call are not kept: a rank knows which parts of a call it has, but not
// which the others have.
func Mean[T float32 | float64](ctx context.Context, r *Round, dst, src []T) error {
	if r.means++; r.means <= r.kept {
		return nil
	}
	if r.Workers == r.Comm.Size() {
		return ccl.AllReduce(ctx, r.Comm, dst, src, ccl.Avg)
	}
	if r.Idle {
		clear(dst)
		src = dst
	}
	if err := ccl.AllReduce(ctx, r.Comm, dst, src, ccl.Sum); err != nil {
		return err
	}
	n := T(r.Workers)
	for i := range dst {
		dst[i] /= n
	}
	return nil
}

// Run trains j until j.Rounds are done, ctx ends, or Local or Share returns an error that is not about a lost
// rank. It returns nil in the first case only. A rank that the others have given up, such as one whose
// network was cut off, joins them again as a newcomer. ErrEnded says that the job ended before this
// process was taken in.
func Run(ctx context.Context, j *Job) error {
	m, err := newMember(j)
	if err != nil {
		return err
	}
	defer m.behind.Wait()
	running, ended := context.WithCancel(ctx)
	defer ended()
	m.behind.running = running
	for {
		if err = m.join(ctx); err == nil {
			if err = m.train(ctx); !errors.Is(err, errCutOff) {
				m.leaves(ctx)
			}
			m.c.Close()
		}
		if !errors.Is(err, errCutOff) || m.opt.Store == nil || ctx.Err() != nil {
			return err
		}
		m.opt.Log.Warn("elastic: this rank comes back as a newcomer", "why", err)
		given := m.vote // other ranks may wait for the word that this rank is out
		m.tell(given.Leave)
		m.become(record{id: newID()}) // what the store has heard of the old one stands
		m.met, m.back = nil, true
	}
}

// errCutOff is why a rank is no member of the job any more, and may come back.
var errCutOff = errors.New("elastic: the others go on without this rank")

// overKey is set once the job is over, for those that wait for it, and endedKey is a number that is not 0 then.
const (
	overKey  = "goccl/elastic/over"
	endedKey = "goccl/elastic/ended"
	goodbye  = 5 * time.Second // for both to be told
)

// join joins the job, as one of its first ranks or as a newcomer.
func (m *member) join(ctx context.Context) error {
	waits, over := context.WithCancelCause(ctx)
	defer over(nil)
	if m.opt.Store != nil {
		go func() {
			_, err := m.opt.Store.Get(waits, overKey)
			for ; err != nil && waits.Err() == nil; _, err = m.opt.Store.Get(waits, overKey) {
				time.Sleep(askAgain) // the store may come back
			}
			if err == nil {
				over(ErrEnded)
			}
		}()
	}
	c, err := ccl.Join(waits, &m.opt)
	for away := (*boot.Error)(nil); m.back && waits.Err() == nil && errors.As(err, &away) && away.Code == boot.Lost; {
		time.Sleep(askAgain) // the store was there, and may come back
		c, err = ccl.Join(waits, &m.opt)
	}
	switch {
	case err == nil:
		if m.c, m.record.late = c, slices.Contains(c.Fresh(), c.Rank()); !m.record.late {
			m.record.id = int64(c.Rank() + 1)
			m.vote = quorum.Founder(m.record.id, c.Size())
		}
		return nil
	case errors.Is(err, ccl.ErrUnused), context.Cause(waits) == ErrEnded:
		return ErrEnded
	}
	return err
}

// newMember checks j.
func newMember(j *Job) (*member, error) {
	if j == nil || j.Share == nil {
		return nil, errors.New("elastic: Job.Share is nil")
	}
	m := &member{job: j}
	m.views.On = j.On
	if j.Options != nil {
		m.opt = *j.Options
	}
	if m.opt.Spares > 0 {
		return nil, errors.New("elastic: Options.Spares is not 0: newcomers wait in the store, and no spares")
	}
	if m.opt.Log == nil {
		m.opt.Log = slog.Default()
	}
	n, err := m.views.Len(j.State)
	if err != nil {
		return nil, fmt.Errorf("elastic: Job.State: %w; set Job.On for memory of a device", err)
	}
	m.bytes = int64(n)
	if m.opt.Store == nil { // named, so that a rank that is given up can come late to the job
		if m.opt.Store, err = boot.EnvStore(); err != nil {
			return nil, fmt.Errorf("elastic: %w", err)
		}
	}
	m.become(record{id: newID(), round: int64(j.Round)})
	return m, nil
}

// become makes this process a newcomer with that record.
func (m *member) become(r record) { m.record, m.vote = r, quorum.New(r.id) }
