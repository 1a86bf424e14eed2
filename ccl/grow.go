package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/lobby"
	"github.com/goccl/goccl/internal/plain"
	"github.com/goccl/goccl/internal/simhost"
)

// Grow returns a Comm of size ranks: those of c under their numbers, and after them processes that have
// started late and wait in Join, and spares. Where fewer wait than it takes, nothing happens, and Grow
// returns c itself. Further newcomers become spares, up to Options.Spares, so Grow with c.Size()
// takes in new spares for those that were used. Fresh lists the ranks that need the state.
//
// All ranks of c call Grow with the same size, between two steps: it is a collective, and c makes no
// other call meanwhile. All get the same, a new Comm or c, or an error, as c has failed. A newcomer
// or spare that is lost while it joins fails nothing: Grow returns c, which goes on, and another Grow
// finds the processes that wait then. If a waiting process does not answer, Grow waits one second for it, and
// only once.
//
// A new Comm is that of a new job, which meets anew: close c, and split the new Comm again. Memory of
// MakeSlice stays what it is. It can Replace ranks and Grow. NCCL and RCCL make a new communicator; oneCCL
// and MPI cannot: ErrUnsupported. That is also the answer for a Comm of Split, and where there is no
// store in which others could wait: see Options.Store.
//
// Grow is a function, as the collectives are, since what it returns is of another job than c.
func Grow(ctx context.Context, c *Comm, size int) (*Comm, error) {
	if err := callable(ctx, c, named("Grow")); err != nil {
		return nil, err
	}
	return grow(ctx, c, size, false)
}

// GrowAll is [Grow] to however many ranks there are with the processes that wait now, spares included, and to
// most ranks. So newcomers need not be counted, and those that wait together come in together; a process
// that has announced itself and does not answer is left out. GrowAll returns c itself where nobody waits, or c
// has that many ranks or more. All ranks of c give the same number.
func GrowAll(ctx context.Context, c *Comm, most int) (*Comm, error) {
	if err := callable(ctx, c, named("GrowAll")); err != nil {
		return nil, err
	}
	return grow(ctx, c, most, true)
}

// grow is Grow, or GrowAll.
func grow(ctx context.Context, c *Comm, size int, all bool) (*Comm, error) {
	const op = "Grow"
	if err := whyNotGrow(c); err != nil {
		return nil, c.refuse(op, ErrUnsupported, err)
	}
	p, err := planGrowth(ctx, c, size, all)
	switch {
	case err != nil:
		return nil, inGrow(err)
	case p.Code != 0:
		return nil, c.refuse(op, p.Code, errors.New(p.Why))
	case p.Renew:
		next, err := meetInPool(ctx, c, "Replace")
		if err != nil {
			return nil, inGrow(err)
		}
		grown, err := grow(ctx, next, size, all)
		if err != nil {
			// next has the pool now, so the caller needs it: its next call fails for the same reason, or all
			// is well
			c.opt.Log.Warn("ccl: Grow came to nothing", "error", err)
			return next, nil
		}
		if grown != next {
			next.Close()
		}
		return grown, nil
	case p.Seats == nil:
		return c, nil
	}
	inject.At("grow.told")
	o := settings{Options: *c.opt.asked, asked: c.opt.asked, older: c.opt.links.in(c)}
	o.Spares, o.OnFailure, o.OnCall, o.Log, o.Name = p.Seats.Spares, c.opt.OnFailure, c.opt.OnCall, c.opt.Log, c.Name()
	if c.lib.device >= 0 { // on which the program has its memory
		o.Device = &c.lib.device
	}
	m := &meeting{store: c.opt.asked.Store, g: p.G, seats: p.Seats, rank: c.Rank(), listener: p.listener,
		hostID: c.opt.hostID, open: isOpen(c.eng), from: c.eng.Control().Share.Host}
	within, cancel := limited(ctx, c.opt.Timeout)
	defer cancel()
	var pool <-chan struct{} // fails where a spare is lost
	if r := reserveOf(c); r != nil {
		pool = r.current().Done()
	}
	next, err := m.join(within, o, c.Done(), pool, p.watchGuests(within, m.store))
	switch {
	case err == nil:
		inject.At("grow.made")
		return next, nil
	case m.undecided != nil:
		// so nobody waits for this rank
		c.Abort(fmt.Errorf("it is not known whether the job has grown, since the store does not say: %w", m.undecided))
		return nil, storeError(ctx, op, c.Rank(), m.undecided)
	}
	if c.Rank() == 0 && c.Err() == nil && ctx.Err() == nil {
		var e *Error
		if errors.As(err, &e) && e.Code == ErrCanceled { // by m.join, which has heard that
			err = errors.New("one of them was lost, or did not reach this rank")
		}
		c.opt.Log.Warn(fmt.Sprintf("ccl: Grow came to nothing, and the job goes on with %d ranks; to join were %s: %v",
			c.Size(), p.seated(), err))
	}
	if err := Barrier(ctx, c); err != nil { // all that go on have come to the same
		return nil, inGrow(err)
	}
	return c, nil
}

// inGrow is err as Grow returns it.
func inGrow(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	in := *e
	in.Op = "Grow"
	return &in
}

// storeError is the error of a store, in op, which has until ctx ends.
func storeError(ctx context.Context, op string, rank int, err error) *Error {
	e := bootError(err)
	if ctx.Err() == nil && (e.Code == ErrTimeout || e.Code == ErrCanceled) { // it was asked for less long
		e.Code = ErrBackend
	}
	e.Op, e.Rank, e.Missing = op, rank, nil
	if e.Code == ErrRankLost { // the hall is no rank
		e.Code = ErrBackend
	}
	e.Peer = -1
	return e
}

// whyNotGrow is why c cannot grow, the same on all ranks of a job.
func whyNotGrow(c *Comm) error {
	switch b := engine.Find(c.Backend()); {
	case b != nil && b.Uninterruptible:
		return fmt.Errorf("ranks of %s cannot join while others run; Backend \"cpu\" can grow, as can NCCL and RCCL", b.Title)
	case c.opt.asked == nil:
		return errors.New("this Comm is a part of the job: a Comm of the whole job can grow")
	}
	return nil
}

// growth is what the lead has found: its plan, or why there is none, or nothing to do. The lead alone has the last two.
type growth struct {
	Code  Code
	Why   string
	Renew bool // the pool first, where a spare is lost: the others do not listen
	G     int64
	Seats *lobby.Seats

	listener net.Listener
	guests   []lobby.Guest
}

// planGrowth has all ranks say what they want, and then rank 0, the lead, what comes of it.
func planGrowth(ctx context.Context, c *Comm, size int, takesAll bool) (*growth, error) {
	const isFresh, isFailed, noStore, isAll = 1, 2, 4, 8
	state := bit[int64](takesAll) * isAll
	if c.opt.asked.Store == nil { // which may differ: an environment reaches some hosts alone
		state |= noStore
	}
	if r := reserveOf(c); r != nil {
		if r.isFresh() {
			state |= isFresh
		}
		if r.current().Err() != nil {
			state |= isFailed
		}
	} else if a := c.opt.came.of(c); slices.Contains(a.fresh, c.Rank()) && !a.restored.Load() {
		state |= isFresh
	}
	said := make([]int64, 2*c.Size())
	if err := AllGather(ctx, c, said, []int64{int64(size), state}); err != nil {
		return nil, err
	}
	all, without, calls := int64(0), -1, []string{"Grow", "GrowAll"}
	for r := range c.Size() {
		if all |= said[2*r+1]; without < 0 && said[2*r+1]&noStore != 0 {
			without = r
		}
		switch theirs := said[2*r]; {
		case theirs != said[0]:
			return &growth{Code: ErrArgument, Why: fmt.Sprintf("rank %d wants %d ranks, and rank 0 %d", r, theirs, said[0])}, nil
		case (said[2*r+1]^said[1])&isAll != 0:
			return &growth{Code: ErrArgument, Why: fmt.Sprintf("rank %d calls %s, and rank 0 %s", r,
				calls[said[2*r+1]/isAll], calls[said[1]/isAll])}, nil
		case int(theirs) < c.Size() && !takesAll:
			return &growth{Code: ErrArgument,
				Why: fmt.Sprintf("%d ranks, and the Comm has %d: Grow takes none away", theirs, c.Size())}, nil
		}
	}
	if without >= 0 {
		return &growth{Code: ErrUnsupported,
			Why: fmt.Sprintf("rank %d has no store in which others could wait: set GOCCL_HALL (bench launch -restart does) or Options.Store, on all ranks", without)}, nil
	}
	p, told := new(growth), false
	if c.Rank() == 0 {
		var fresh []int
		for r := range c.Size() {
			if said[2*r+1]&isFresh != 0 {
				fresh = append(fresh, r)
			}
		}
		p.find(ctx, c, fresh, size, takesAll, all&isFailed != 0)
	}
	defer func() {
		if !told && p.listener != nil {
			p.listener.Close()
		}
	}()
	// the rest is the lead's
	found, err := BroadcastValue(ctx, c, growth{Code: p.Code, Why: p.Why, Renew: p.Renew, G: p.G, Seats: p.Seats}, 0)
	if err != nil {
		return nil, err
	}
	if told = true; c.Rank() > 0 {
		found.Why = plain.Text(found.Why) // it may come from a server
		p = &found
	}
	return p, nil
}

// answerLimit is how long the lead waits for guests that do not answer.
const answerLimit = time.Second

// find is the lead's part: it looks in the store for waiting processes, calls them, and seats them.
// fresh are ranks of c that have not the state yet. all: size is only the most that there may be. failed: the pool has
// failed.
func (p *growth) find(ctx context.Context, c *Comm, fresh []int, size int, all, failed bool) {
	store, waiting, need := c.opt.asked.Store, c.Waiting(), size-c.Size()
	if _, err := settleSecret(store); err != nil { // of the job that this one would become
		p.Code, p.Why = secretCode(err), err.Error()
		return
	}
	callers := ctx
	// So that a store that is silent is an error, and not a wait: the others wait in a call of c, and no longer than
	// its Timeout.
	limit := decideLimit
	if c.opt.Timeout > 0 && !inject.Wrong("ccl.grow") {
		limit = min(limit, c.opt.Timeout/2)
	}
	ctx, cancel := lived.Within(ctx, limit)
	defer cancel()
	fail := func(err error) {
		e := storeError(callers, "Grow", 0, err)
		p.Code, p.Why, p.Seats = e.Code, fmt.Sprint(e.Err), nil
	}
	came, err := lobby.Waiting(ctx, store)
	if all {
		need = max(min(need, waiting+came), 0)
	}
	switch {
	case err != nil:
		fail(err)
		return
	case waiting+came < need, all && need == 0, need == 0 && (came == 0 || waiting >= c.opt.asked.Spares):
		return
	case failed:
		p.Renew = true
		return
	}
	g, guests, err := lobby.Call(ctx, store, waiting, answerLimit)
	if err != nil {
		fail(err)
		return
	}
	inject.At("grow.called")
	h := simhost.Of(ctx)
	n := ourWays(h)
	at, unmet := n.meetAt(addressOf(c), guests)
	for k, why := range unmet {
		if why != "" {
			c.opt.Log.Warn(fmt.Sprintf("ccl: Grow does not take in %s: %s", guests[k].Name(), why))
		}
	}
	if all { // others may have come since, and some of them are gone
		need = min(size-c.Size(), able(guests, unmet))
	}
	seats := seatGuests(guests, unmet, c.Size(), need, c.opt.asked.Spares, waiting)
	if seats.Size > 0 {
		seats.Secret, seats.Limit, seats.Links = auth.NewSecret(), meetingLimit(&c.opt.Options), c.opt.links.times() > 0
		seats.Fresh = append(fresh, seats.Fresh...) // the newcomers read it, too
		if p.listener, seats.Addr, err = listenAt(h, at); err != nil {
			seats = nobody(seats)
		}
	}
	if serr := lobby.Seat(ctx, store, g, seats); serr != nil || err != nil {
		if p.listener != nil {
			p.listener.Close()
			p.listener = nil
		}
		fail(cmp.Or(err, serr))
		return
	}
	inject.At("grow.seated")
	if seats.Size > 0 {
		p.G, p.Seats, p.guests = g, seats, guests
	}
}

// able is how many guests can be seated.
func able(guests []lobby.Guest, unmet []string) (n int) {
	for k := range guests {
		n += bit[int](!guests[k].Silent && (unmet == nil || unmet[k] == ""))
	}
	return n
}

// seatGuests gives those that have answered their ranks, after the workers that there are: spares
// of the job first, by their number. Those that are silent, or cannot come, as unmet says, get
// none. Size is 0 where too few have come, or nobody is needed; and where a spare has not answered,
// of which so many wait: it is slow, and would be left behind, or lost, which will be known.
func seatGuests(guests []lobby.Guest, unmet []string, workers, need, spares, waiting int) *lobby.Seats {
	s := &lobby.Seats{Ranks: make([]int, len(guests)), Unmet: unmet}
	order, came := make([]int, 0, len(guests)), 0
	for k := range guests {
		if s.Ranks[k] = -1; guests[k].Silent || unmet != nil && unmet[k] != "" {
			continue
		}
		if order = append(order, k); guests[k].Spare == 0 {
			came++
		}
	}
	if len(order) < need || need == 0 && came == 0 || len(order)-came < waiting {
		return s
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := guests[a].Spare, guests[b].Spare
		if (x == 0) != (y == 0) { // newcomers behind the spares
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	})
	order = order[:min(len(order), need+spares)]
	for i, k := range order {
		s.Ranks[k] = workers + i
	}
	for i := range need {
		s.Fresh = append(s.Fresh, workers+i)
	}
	s.Size, s.Spares = workers+len(order), len(order)-need
	return s
}

// meetingLimit is how long a meeting may take.
func meetingLimit(o *Options) time.Duration { return 2 * max(o.PeerTimeout, defaultPeerTimeout) }

// addressOf is the address at which other hosts reach the lead's process, invalid in a job on one host.
func addressOf(c *Comm) netip.Addr {
	all := &c.eng.Control().Site.Job.Net.Addrs
	if all.Len() == 0 {
		return netip.Addr{}
	}
	return all.At(c.eng.World(0)).Addr()
}

// seated is how people call those that have a seat.
func (p *growth) seated() string {
	var names []string
	for k, g := range p.guests {
		if p.Seats.Ranks[k] >= 0 {
			names = append(names, g.Name())
		}
	}
	return strings.Join(names, " and ")
}

// watchGuests has the lead hear, until ctx ends, when the launcher or the store says that one of those
// that it has seated has ended, or gives up: the channel is closed then.
func (p *growth) watchGuests(ctx context.Context, s boot.Store) <-chan struct{} {
	gone := make(chan struct{})
	once := sync.OnceFunc(func() { close(gone) })
	for k, one := range p.guests {
		for _, id := range []string{one.ID, one.Line} {
			if id == "" || p.Seats.Ranks[k] < 0 {
				continue
			}
			go func() {
				if _, err := s.Get(ctx, lobby.Gone(id)); err == nil {
					once()
				}
			}()
		}
	}
	return gone
}

// nobody are seats of the same guests, of whom none is taken in.
func nobody(seats *lobby.Seats) *lobby.Seats {
	none := &lobby.Seats{Ranks: seats.Ranks, Unmet: seats.Unmet}
	for k := range none.Ranks {
		none.Ranks[k] = -1
	}
	return none
}
