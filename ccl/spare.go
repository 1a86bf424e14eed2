package ccl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/engine"
)

// A job with spares. All its ranks are in one Comm, the pool, from the start, so the failure
// detector watches spares, too, and a spare has the job's secret, options, addresses and memory.
// The workers' Comm is a part of the pool, in the order of their numbers. A loss fails the pool; a
// worker that calls Replace fails it, too. Then all ranks that are left, workers and spares, shrink
// the pool, tell each other their numbers, and make the workers' Comm of the new pool: see seat.go.
// If one is lost meanwhile, the new pool fails, and all of them go round again. There is no other
// protocol.
//
// The pool carries nothing else, and nobody but this package sees it. It has no library.

// reserve is a rank's part in a job with spares. It belongs to one Comm at a time, the last that
// NewComm or Replace has made.
type reserve struct {
	workers int
	world   int           // this rank of the job
	opt     settings      // of the workers' Comm
	topo    algo.Topology // of the job

	closing sync.WaitGroup // of pools that have failed

	mu     sync.Mutex
	of     *Comm // whose it is; nil: this rank waits, or has left
	left   bool
	pool   *Comm
	past   generations   // of the pool
	number int           // of this rank among the workers; -1: it waits
	fresh  bool          // it has not the state yet
	seats  seats         // as they were given out last
	lib    choice        // of the workers' Comm
	untold map[int]error // why spares are lost, by rank of the job, until this rank knows that people are told
}

// choice is which library a Comm has, once there was one.
type choice struct {
	backend string // "cpu" for none, "" before there was a Comm
	device  *int   // this rank's
}

// poolName is the name of the pool in reports.
const poolName = "pool"

// checkSpares says what is wrong with Options.Spares in a job of size ranks.
func (o *Options) checkSpares(size int) (Code, error) {
	if o.Spares == 0 {
		return 0, nil
	}
	if o.Spares >= size {
		return ErrArgument, fmt.Errorf("Options.Spares (GOCCL_SPARES) is %d, and the job has %d rank%s: at least one of them works", o.Spares, size, plural(size))
	}
	if b := engine.Find(o.Backend); b != nil && b.Uninterruptible {
		return ErrUnsupported, errUninterruptible(b.Title)
	}
	return 0, nil
}

// newReserve joins the job that world makes the pool of, and waits for this rank's Comm.
func newReserve(ctx context.Context, o settings, tab algo.Table, host string, rank, size int,
	world func(plane.Options) (*cpu.Comm, *call.Fault), met func(), in *arrival) (*Comm, *call.Fault) {
	r := &reserve{workers: size - o.Spares, world: rank, opt: o, number: -1}
	po := o
	po.Backend, po.Device, po.Staged, po.Hints, po.RankOrder = "cpu", nil, false, Hints{}, false
	po.Timeout = -1 // a spare waits for as long as it takes; Replace has a limit of its own
	po.pool = r
	po.Name, po.OnCall, po.OnFailure = poolName, nil, r.poolFailed
	pool, f := newComm(po, tab, host, poolName, world,
		func(eng *cpu.Comm) (*library, *call.Fault) { return onCPU(eng), nil })
	if f != nil {
		return nil, f
	}
	all := make([]int, size)
	for w := range all {
		all[w] = w
	}
	r.mu.Lock() // the pool may fail already
	r.pool, r.topo = pool, pool.eng.Topology()
	r.past.begin(all)
	r.seats.of = all[:r.workers]
	if rank < r.workers {
		r.number = rank
	}
	r.mu.Unlock()
	if rank >= r.workers {
		pool.SetName(r.String())
	}
	tellApart(pool)
	met()
	begun := false
	defer func() { // also if the goroutine is ended in here, as by ccltest.Kill
		if !begun {
			r.leave(nil, errOver)
		}
	}()
	if in != nil {
		if f := in.settle(pool.eng); f != nil {
			return nil, f
		}
		r.opt.born, r.fresh, ctx = in.g, slices.Contains(in.fresh, rank), in.then
	}
	if o.Order == OrderLinks || in != nil && in.links {
		if err := orderByLinks(ctx, pool, o.older); err != nil && pool.Err() == nil {
			return nil, faultInJob(ctx, pool, err)
		}
	}
	c, f := r.begin(ctx)
	begun = true
	return c, f
}

// begin makes the first Comm, and returns it once this rank has one.
func (r *reserve) begin(ctx context.Context) (*Comm, *call.Fault) {
	c, out, f := r.form(ctx, true, false)
	var calls <-chan int64 // of a meeting in which the job grows
	stop := func() {}
	if c == nil && r.waitsAfter(out, f) {
		calls, stop = r.listen(ctx)
		defer stop()
	}
	for c == nil && r.waitsAfter(out, f) {
		select {
		case <-r.current().Done():
			c, out, f = r.form(ctx, false, false)
			continue
		case g := <-calls:
			next, moved, f := r.follow(ctx, g, func() { // it may wait in the new job for long: nothing of this one stays
				stop()
				r.leave(nil, errOver)
			})
			if moved {
				return next, f
			}
			continue
		case <-ctx.Done():
		}
		f = &call.Fault{Code: call.CtxCode(ctx.Err()), Peer: -1, Own: true, Err: fmt.Errorf("%v: %w", r, ctx.Err())}
		break
	}
	if c != nil {
		r.give(nil, c)
		return c, nil
	}
	if out == over || r.isLeft(f) {
		r.sayUnused()
		f = &call.Fault{Code: unusedHere, Peer: -1,
			Err: fmt.Errorf("spare %d of %d was not needed: the job has ended", r.world-r.workers+1, r.opt.Spares)}
	}
	r.leave(nil, f)
	return nil, f
}

// unusedHere is ErrUnused as the code of a Fault, which no other rank hears of.
const unusedHere = call.Code(ErrUnused)

// waitsAfter reports whether this rank, which has got no Comm, is to wait for the next pool. A
// spare is, unless nobody is left that may need it, or it is itself at fault, or its context has
// ended. f is nil where it was just not needed.
func (r *reserve) waitsAfter(out outcome, f *call.Fault) bool {
	switch {
	case r.world < r.workers, out == minority, out == over, out == deserted:
		return false
	case f == nil, out == tooFew:
		return true
	}
	return !f.Own && f != closedHere && f.Peer != r.world
}

// made notes that c, a new Comm of the workers, stands.
func (r *reserve) made(c *Comm) {
	c.reserve = r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lib.backend = c.Backend()
	if c.lib.device >= 0 {
		r.lib.device = &c.lib.device
	}
}

// errOver is why a pool fails when a worker closes its Comm, and errReplace when one calls Replace.
var (
	errOver    = errors.New("a rank that works has closed its Comm")
	errReplace = errors.New("a replacement")
)

// leave takes this rank out of the pool, if c is the Comm that the reserve belongs to. Where a rank
// that works leaves, the pool fails, so that spares come together: they find that no rank works any
// more, or wait for the others. Where a spare does, nobody need do anything.
func (r *reserve) leave(c *Comm, why error) {
	r.mu.Lock()
	if r.left || r.of != c {
		r.mu.Unlock()
		return
	}
	r.left = true
	pool, works := r.pool, r.world < r.workers || r.of != nil
	r.mu.Unlock()
	if works {
		pool.Abort(why)
	}
	pool.Close()
	r.closing.Wait()
}

// poolFailed is what becomes of the first loss in a pool; lost hears of those that follow before there is another pool.
func (r *reserve) poolFailed(e *Error) {
	if e.Code != ErrRankLost || e.Peer < 0 {
		return
	}
	w := e.Peer
	if e.World != nil {
		w = e.World[e.Peer]
	}
	r.lost(w, e.Err)
}

// lost hears that rank w of the job is lost.
func (r *reserve) lost(w int, why error) {
	inject.At("spare.lost")
	r.mu.Lock()
	if r.untold == nil {
		r.untold = map[int]error{}
	}
	r.untold[w] = why
	r.mu.Unlock()
	r.tellLost()
}

// tellLost tells people which spares are lost that waited, which fails no call: one rank of each
// host does. Each loss has it look at all that it has not seen told: the rank that was to tell may
// be lost itself.
func (r *reserve) tellLost() {
	r.mu.Lock()
	pool, untold := r.pool, maps.Clone(r.untold)
	maps.DeleteFunc(untold, func(w int, _ error) bool { return !slices.Contains(r.seats.waiting, w) })
	r.mu.Unlock()
	for w, why := range untold {
		told := pool.eng.Control().Standing.TellOfWorld(w, func() {
			inject.At("spare.tells")
			left := r.waiting()
			r.opt.Log.Warn(fmt.Sprintf("ccl: spare %d of %d (world rank %d) lost: %v; %d spare%s left. No call fails for it",
				w-r.workers+1, r.opt.Spares, w, why, left, plural(left)))
		})
		if told {
			r.mu.Lock()
			delete(r.untold, w)
			r.mu.Unlock()
		}
	}
}

// isPlain reports whether a job that has grown, with so many spares and on that backend, needs no pool: nobody waits
// in it, and it has no library whose devices its ranks would keep. It follows from what must be equal on all ranks.
// Such a job is one Comm, in which the meeting is settled; so Grow makes one Comm and not two, and so does Shrink
// after it.
func isPlain(spares int, backend string) bool {
	return spares == 0 && (backend == engine.CPU.Name || backend == "" && withDevices("") == nil)
}

// arrivals are the ranks that Grow has taken into comm, a plain one.
type arrivals struct {
	comm     *Comm
	fresh    []int
	restored atomic.Bool // on this rank
}

// isDark reports whether err says that a store cannot be reached, or has broken off.
func isDark(err error) bool {
	var e *boot.Error
	return errors.As(err, &e) && e.Code == boot.Lost
}
