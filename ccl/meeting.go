package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/lobby"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/simhost"
)

// The meeting of a job that grows. Its ranks are those of the Comm that grows, and guests:
// newcomers, which wait in the store, and spares, which wait in their pool and listen there, too.
// They start a new job, as any job starts, while the old one stands. Then its pool has a barrier;
// the lead, which has come out of it, says in the store that the meeting counts, and tells the
// others. Whoever does not hear that asks the store, which says that it does not count unless the
// lead was first. So it counts for all or for none. Where it counts, all have been in the new pool,
// and a loss from then on is one of the new job; where it does not, all go back: the old job's
// ranks to their Comm, spares to their pool, newcomers to the store.

// meeting is a rank's part in one.
type meeting struct {
	store    boot.Store
	g        int64
	seats    *lobby.Seats
	rank     int
	listener net.Listener // the lead's
	hostID   string
	from     *shm.Host       // the memory of this rank's host in the old job, nil for a newcomer
	open     bool            // other hosts could reach a port of the old job
	guest    string          // the ID of a newcomer, if a launcher has started it
	then     context.Context // of what follows the meeting
	moved    func()          // is called once it counts, unless it is nil

	settled   bool // it is known whether it counts
	counts    bool
	undecided error // the store did not say
}

// arrival is how a rank comes into a job that has grown.
type arrival struct {
	g      int64
	secret auth.Secret
	open   bool                             // see meeting
	from   *shm.Host                        // see meeting
	fresh  []int                            // ranks that work, and have not the state
	links  bool                             // the links between hosts are measured, of new hosts alone
	settle func(pool *cpu.Comm) *call.Fault // nil if the meeting counts
	then   context.Context                  // of what follows
}

const (
	// askAfter is when a rank that waits in a meeting asks the store whether it has come to nothing.
	// Most are over by then.
	askAfter = 250 * time.Millisecond
	// reachLimit is how long a rank tries to connect with the lead, which listens before it tells anybody.
	reachLimit = 2 * answerLimit
	// mostUnreached is in how many meetings in a row a newcomer does not reach the lead before it
	// ends. The lead may be lost, once.
	mostUnreached = 2
	// seatLimit is how long a guest that has answered waits for its seat. A lead that lives takes answerLimit at most.
	seatLimit = 3 * answerLimit
	// askAgain is when a spare asks a store that has failed once more.
	askAgain = time.Second
)

// join meets the others, until one of lost is closed, and returns the new Comm, on a spare once it is needed.
func (m *meeting) join(ctx context.Context, o settings, lost ...<-chan struct{}) (*Comm, error) {
	short, cancel := lived.Within(ctx, m.seats.Limit)
	defer cancel()
	for _, gone := range lost {
		go cancelOn(short, gone, cancel)
	}
	go func() { // the lead may have given up before this rank has found it
		if lived.Sleep(short, askAfter) && lobby.Refused(short, m.store, m.g) {
			cancel()
		}
	}()
	c, err := m.meet(short, ctx, o)
	if err != nil && !m.settled {
		m.ask(ctx)
	}
	return c, err
}

// cancelOn calls cancel once gone is closed, unless ctx ends first.
func cancelOn(ctx context.Context, gone <-chan struct{}, cancel context.CancelFunc) {
	select {
	case <-gone:
		cancel()
	case <-ctx.Done():
	}
}

// meet starts the new job within short. What follows it is within ctx.
func (m *meeting) meet(short, ctx context.Context, o settings) (*Comm, error) {
	secret, err := m.secret()
	if err != nil {
		if m.listener != nil {
			m.listener.Close()
		}
		return nil, &Error{Code: secretCode(err), Op: "Grow", Rank: m.rank, Peer: -1, Err: err}
	}
	reach := time.Duration(0)
	if m.from == nil { // a newcomer; the others have reached the lead before
		reach = reachLimit
	}
	b, err := boot.TCP(short, m.seats.Addr, m.rank, m.seats.Size, &boot.TCPOptions{
		Job: fmt.Sprint("goccl generation ", m.g), Secret: secret.Bytes(), HostID: m.hostID, Reach: reach,
		Listener: m.listener})
	if err != nil {
		if m.listener != nil { // it may not have come so far
			m.listener.Close()
		}
		return nil, bootError(err)
	}
	defer b.Close()
	inject.At("grow.met")
	m.then = ctx
	return newWorld(short, b, o, func() { b.Close() },
		&arrival{g: m.g, secret: secret, open: m.open, from: m.from, fresh: m.seats.Fresh, links: m.seats.Links,
			settle: m.settle, then: ctx})
}

// secret is that of the new job: known to those that were told where it meets, and that know the
// one of the store or of the environment. Where there is neither, it is as open as the store is.
func (m *meeting) secret() (auth.Secret, error) {
	given, err := settleSecret(m.store)
	if err != nil {
		return given, err
	}
	return given.Derive(fmt.Sprintf("goccl generation %d ", m.g), m.seats.Secret), nil
}

// decideLimit is how long the store may take to say who waits, and whether a meeting counts.
const decideLimit = 10 * time.Second

// settle finds out, among the ranks of the new job's pool, whether the meeting counts.
func (m *meeting) settle(pool *cpu.Comm) *call.Fault {
	ctx, cancel := lived.Within(m.then, m.seats.Limit) // the new job hears of losses by itself
	defer cancel()
	inject.At("grow.pool")
	t := vote{ctx, pool}
	err := t.run(op.Barrier, TypeNone, Sum, nil, nil)
	inject.At("grow.voted")
	word := []byte{0}
	switch {
	case err != nil:
	case m.rank == 0:
		m.decide(ctx, true)
		inject.At("grow.decided")
		if m.undecided == nil { // else it leaves the pool, and all ask the store
			word[0] = bit[byte](m.counts)
			t.broadcast(word) // those that do not hear it ask the store
		}
	default:
		if err = t.broadcast(word); err == nil {
			m.settled, m.counts = true, word[0] == 1
		}
		inject.At("grow.decided")
	}
	if !m.settled {
		m.ask(ctx)
	}
	if m.counts {
		if m.moved != nil {
			m.moved()
		}
		if m.guest != "" {
			m.within(ctx, func(ctx context.Context) { m.store.Set(ctx, lobby.Taken(m.guest), nil) })
		}
		return nil
	}
	return cmp.Or(faultOf(err), call.NewFault(call.Aborted, -1,
		"the meeting does not count: one of those that were to join was lost"))
}

// ask has the store say whether the meeting counts, on a rank that has not heard.
func (m *meeting) ask(ctx context.Context) { m.decide(ctx, false) }

func (m *meeting) decide(ctx context.Context, lead bool) {
	m.within(ctx, func(ctx context.Context) {
		m.counts, m.undecided = lobby.Decide(ctx, m.store, m.g, lead || inject.Wrong("ccl.decide"), decideLimit)
	})
	m.settled = true
}

// within does f with a context that outlives ctx, which may be why f is needed.
func (m *meeting) within(ctx context.Context, f func(context.Context)) {
	ctx, cancel := lived.Within(context.WithoutCancel(ctx), decideLimit)
	defer cancel()
	f(ctx)
}

// comesLate reports whether this process is to join a job that runs, and finds the store.
func (o *Options) comesLate(ctx context.Context) (bool, error) {
	if o.Store == nil {
		s, err := boot.EnvStore()
		if err != nil || s == nil {
			return false, err
		}
		if o.Store = s; startedIn(ctx).Load() { // it joins once more, with those that it has started with
			return false, nil
		}
	}
	if environ.Newcomer.Get() != "" {
		return true, nil
	}
	return lobby.Begun(ctx, o.Store)
}

// started is whether this process was in the job when it began: see startedIn.
var started atomic.Bool

// startedIn is started, of the process that ctx is of.
func startedIn(ctx context.Context) *atomic.Bool {
	if h := simhost.Of(ctx); h != nil {
		return h.Started()
	}
	return &started
}

// begun notes that this process is in its first job, and did not come late.
func (o *Options) begun(ctx context.Context, in *arrival) {
	if o.Store != nil && in == nil {
		startedIn(ctx).Store(true)
	}
}

// thisProcess tells this process from all others that may found a job: see processIn.
var thisProcess = auth.NewSecret()

// processIn is thisProcess, of the process that ctx is of.
func processIn(ctx context.Context) []byte {
	if h := simhost.Of(ctx); h != nil {
		id := h.ID()
		return id[:]
	}
	return thisProcess
}

// found tells the store that the job runs, on rank 0 of the first job. It is join.ErrBegun where
// another job was first there.
func (o *Options) found(ctx context.Context) error {
	first, err := lobby.Begin(ctx, o.Store, processIn(ctx))
	switch {
	case err != nil:
		o.Log.Warn("ccl: the store cannot be told that the job has begun, so no process that starts late finds it", "error",
			err)
	case !first && !inject.Wrong("ccl.found"):
		return join.ErrBegun
	}
	return nil
}

// unlessBegun is ctx, which ends for join.ErrBegun if a job begins in store s before joined is called.
// Some ranks of this job may have come late for that reason, and the others would wait for them. It is
// another job: this one begins in the store only once all of its ranks have called joined. over frees
// what joins has.
func unlessBegun(ctx context.Context,
	s boot.Store) (joins context.Context, joined func(), over context.CancelCauseFunc) {
	if s == nil || startedIn(ctx).Load() {
		return ctx, func() {}, func(error) {}
	}
	joins, end := context.WithCancelCause(ctx)
	watches, stop := context.WithCancel(ctx)
	var settled atomic.Bool
	go func() {
		defer stop()
		if _, err := lobby.Founder(watches, s); err == nil && settled.CompareAndSwap(false, true) {
			end(join.ErrBegun)
		}
	}()
	return joins, func() {
		settled.Store(true)
		stop()
	}, end
}

// isBegun reports whether this process failed to join its job, which err says, since another has
// begun in store s. joins is unlessBegun's.
func isBegun(ctx, joins context.Context, s boot.Store, err error) bool {
	if s == nil || startedIn(ctx).Load() || ctx.Err() != nil {
		return false
	}
	if errors.Is(err, join.ErrBegun) || context.Cause(joins) == join.ErrBegun {
		return true
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != ErrCanceled { // another rank has found it, and has ended its join
		return false
	}
	begun, err := lobby.Begun(ctx, s)
	return err == nil && begun
}

// self is this process, which ctx is of, as a guest.
func self(ctx context.Context, id string) lobby.Guest {
	n := ourWays(simhost.Of(ctx))
	return lobby.Guest{ID: id, Host: hostName(environ.HostID.Get()), At: []byte(n.identity), PID: os.Getpid(),
		Addrs: n.ours}
}

// enter is Join of a process that comes late: it waits in the store until a job takes it in.
func enter(ctx context.Context, o Options, id string) (*Comm, error) {
	s, err := o.settled()
	if err != nil {
		return nil, &Error{Code: ErrArgument, Op: "Join", Rank: -1, Peer: -1, Err: err}
	}
	if b := engine.Find(s.Backend); b != nil && b.Uninterruptible {
		return nil, &Error{Code: ErrUnsupported, Op: "Join", Rank: -1, Peer: -1,
			Err: fmt.Errorf("ranks of %s cannot join while others run", b.Title)}
	}
	if id == "" { // nobody but the store says so: it may be a directory of an earlier job
		s.Log.Warn("ccl: the job in this store has begun; this process waits for its Grow", "store", environ.Hall.Get())
	}
	waits, over := context.WithCancelCause(ctx)
	defer over(nil)
	go func() {
		for {
			_, err := s.Store.Get(waits, lobby.Over)
			if err == nil {
				over(errJobEnded)
			}
			if !isDark(err) || !lived.Sleep(waits, askAgain) {
				return
			}
		}
	}()
	dark := false
	for unreached := 0; ; {
		inject.At("guest.waits")
		tied := newTie(waits, s.Store)
		g, err := lobby.Current(waits, s.Store)
		if err == nil {
			g, err = lobby.Next(waits, s.Store, g, true)
		}
		c, moved := (*Comm)(nil), false
		if err == nil {
			inject.At("guest.called")
			me := tied.tell(self(ctx, id))
			c, moved, err = attend(ctx, waits, settings{Options: s}, g, me, environ.HostID.Get(), nil, tied.stays)
		}
		tied.left(moved, err)
		var e *Error
		if errors.As(err, &e) && e.Code == ErrTimeout && slices.Equal(e.Missing, []int{0}) { // the lead, which has seated it
			if unreached++; unreached == mostUnreached {
				e.Op, e.Rank = "Join", -1
				return nil, err
			}
		} else {
			unreached = 0
		}
		switch {
		case err == nil && moved:
			return c, nil
		case moved, errors.As(err, &e) && !passes(e):
			return nil, err
		case context.Cause(waits) == errJobEnded:
			return nil, &Error{Code: ErrUnused, Op: "Join", Rank: -1, Peer: -1, Err: errJobEnded}
		case ctx.Err() != nil:
			return nil, &Error{Code: Code(call.CtxCode(ctx.Err())), Op: "Join", Rank: -1, Peer: -1,
				Err: fmt.Errorf("a process that came late waits for Grow: %w", ctx.Err())}
		case err != nil && e == nil && !isDark(err):
			return nil, storeError(ctx, "Join", -1, err)
		case err != nil && e == nil: // it was there before, and may come back
			if !dark {
				s.Log.Warn("ccl: the store does not answer, and this process asks it again until it does", "error", err)
			}
			dark = true
			lived.Sleep(ctx, askAgain)
			continue
		}
		dark = false
	}
}

var errJobEnded = errors.New("the job has ended without this process, which came late")

// passes reports whether another meeting may come out better: one was lost, or late. What is wrong
// with this process stays wrong.
func passes(e *Error) bool {
	switch e.Code {
	case ErrRankLost, ErrTimeout, ErrCanceled, ErrAborted, ErrClosed:
		return true
	}
	return false
}

// attend answers the call of generation g as me, and takes part in the meeting if it gets a seat,
// until waits ends. from is the memory of this rank's host, nil for a newcomer. leaves is called
// once the meeting counts, unless it is nil; moved says so: then c or err is what comes of it. An
// error that is no *Error is the store's.
func attend(ctx, waits context.Context, o settings, g int64, me lobby.Guest, hostID string, from *shm.Host,
	leaves func()) (c *Comm, moved bool, err error) {
	seats, mine, err := lobby.Answer(waits, o.Store, g, me, seatLimit)
	if no := (*lobby.Unmet)(nil); errors.As(err, &no) {
		return nil, false, &Error{Code: ErrBackend, Op: "Join", Rank: -1, Peer: -1, Err: err}
	}
	if err != nil || mine < 0 {
		return nil, false, err
	}
	inject.At("guest.seated")
	m := &meeting{store: o.Store, g: g, seats: seats, rank: mine, hostID: hostID, from: from, guest: me.ID, moved: leaves}
	if o.asked == nil {
		asked := o.Options
		o.asked = &asked
	}
	o.Spares = seats.Spares
	c, err = m.join(ctx, o, waits.Done())
	if m.undecided != nil {
		return nil, false, m.undecided
	}
	return c, m.counts, err
}

// listen tells of the meetings that are called, to a spare that waits, until stop is called.
func (r *reserve) listen(ctx context.Context) (calls <-chan int64, stop func()) {
	store := r.opt.Store
	if store == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan int64)
	go func() {
		told := false
		for g := r.opt.born; ; { // none is missed, however late this goroutine begins
			next, err := lobby.Next(ctx, store, g, false)
			switch {
			case err == nil:
				g = next
				select {
				case out <- g:
				case <-ctx.Done():
					return
				}
			case ctx.Err() != nil:
				return
			case !told:
				told = true
				r.opt.Log.Warn(fmt.Sprintf("ccl: %v, and cannot be taken along when the job grows until the store answers", r),
					"error", err)
			}
			if err != nil { // it counts as one that waits, so it asks again
				if !lived.Sleep(ctx, askAgain) {
					return
				}
			}
		}
	}()
	return out, cancel
}

// follow takes a spare that waits along into the job that its own becomes in generation g. It is
// not moved where the meeting does not count, or the pool is shrunk meanwhile. leaves is called
// once it counts.
func (r *reserve) follow(ctx context.Context, g int64, leaves func()) (c *Comm, moved bool, f *call.Fault) {
	me := self(ctx, "")
	me.Spare = r.world + 1
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	pool := r.current()
	go cancelOn(waits, pool.Done(), cancel)
	o := settings{Options: *r.opt.asked, asked: r.opt.asked}
	o.Store = r.opt.Store
	c, moved, err := attend(ctx, waits, o, g, me, r.opt.hostID, pool.eng.Control().Share.Host, leaves)
	if moved && err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return nil, true, call.NewFault(call.Backend, -1, "%w", err)
		}
		return nil, true, &call.Fault{Code: call.Code(e.Code), Peer: -1, Err: e.Err}
	}
	return c, moved, nil
}

// isFresh reports whether this rank has not the state yet.
func (r *reserve) isFresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fresh
}
