package ccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/backoff"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/lived"
)

// deviceStream is one stream of a device, as one Comm sees it. Its calls have the Comm's call numbers as
// tickets. How far the stream has got is known from marks, of which at most one is under way: Wait, Test and
// the watch set them; a call sets none.
type deviceStream struct {
	c        *Comm
	s        Stream
	handed   handed
	launched atomic.Uint64 // how many graphs with calls of the Comm
	passed   atomic.Uint64 // the last ticket that the stream is known to have passed
	ran      atomic.Uint64 // and how many of the graphs
	passedAt atomic.Int64  // when that was seen
	ended    atomic.Bool   // err is set
	looking  atomic.Bool   // the watch, on a goroutine of its own: to set a mark may last

	mu      sync.Mutex
	mark    engine.Mark
	marking bool     // a mark is being set, without mu, since this lasts while the stream is full
	covers  progress // what mark stands after
	since   time.Time
	err     *Error // the device's, or that it cannot be told how far the stream has got; see ends
}

// handed is what a stream has been given: the last ticket issued, see last, and how many calls.
type handed struct {
	ticket, calls uint64
	group         *group // the last that was, for the next one; of the goroutine that issues

	// Of graphs that are made of the stream itself, one after the other. mu is the stream's.
	under       bool
	from, taken uint64 // calls when it began, and calls in those before

	awaited []awaited // with OnCall: those not known to be over. mu is the stream's.
}

// progress is how far a stream has been given work: calls by tickets, and graphs.
type progress struct{ ticket, graphs uint64 }

// devices are the streams of its device that a Comm has been given.
type devices struct {
	watching atomic.Bool // watchDevice runs

	mu      sync.Mutex
	streams []*deviceStream // a slice that others range over without mu is never written
}

// stream returns c's view of s, which must be of its device.
func (ds *devices) stream(c *Comm, s Stream) (*deviceStream, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.streams {
		if d.s == s {
			return d, nil
		}
	}
	if err := c.lib.checkDevice(s, "the "+typeName(s)); err != nil {
		return nil, err
	}
	d := &deviceStream{c: c, s: s}
	ds.streams = append(slices.DeleteFunc(slices.Clone(ds.streams), (*deviceStream).over), d)
	if s, ok := s.(observedStream); ok {
		s.Observe(d)
	}
	return d, nil
}

// all are the streams at this moment.
func (ds *devices) all() []*deviceStream {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.streams
}

// drain waits for all that was issued to the streams, unless the Comm is closed.
func (ds *devices) drain(ctx context.Context, l *life) error {
	for _, d := range ds.all() {
		if l.closed.Load() {
			return nil
		}
		if err := d.wait(ctx, d.last()); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// observedStream is a stream whose package tells what becomes of its work: those of cuda and rocm,
// whose Observer this is.
type observedStream interface {
	Observe(o interface {
		Live() bool
		Syncing() (passed func())
		Closing()
		Capturing(own bool) (ended func() (launched func(on interface{ Handle() (uintptr, bool) })))
	})
}

// over reports whether the stream was closed and nothing is to be learnt of it any more. It takes no lock: its caller
// holds that of all streams, which others take under d.mu.
func (d *deviceStream) over() bool {
	_, open := d.s.Handle()
	return !open && (d.idle() || d.ended.Load())
}

// Live is false once the Comm needs to hear nothing more of the stream.
func (d *deviceStream) Live() bool {
	return !d.c.life.closed.Load() && d.c.life.failure.Load() == nil && !d.over()
}

// Syncing is told that someone waits for the stream by itself. A program that has synchronized a stream may close it,
// and no mark could be set on it then.
func (d *deviceStream) Syncing() func() {
	now := d.given()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.err == nil && !d.c.life.closed.Load() {
			d.pass(now)
		}
	}
}

// Closing sets a last mark: what the stream holds runs although it is closed.
func (d *deviceStream) Closing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.marking {
		d.mu.Unlock()
		time.Sleep(deviceNapMin)
		d.mu.Lock()
	}
	if d.err == nil && d.given() != d.covers && !d.idle() {
		d.mark = nil // one that stands before: its memory is the library's until the Comm is closed
		d.set()
	}
}

// elsewhere is how many calls d has had that no capture of its own has taken. d.mu is held.
func (d *deviceStream) elsewhere() uint64 {
	calls := atomic.LoadUint64(&d.handed.calls)
	if d.handed.under {
		calls = d.handed.from
	}
	return calls - d.handed.taken
}

// Capturing is told that a graph is being made, of this stream, or of another one that may take in
// calls on this stream. Two ranks of a process may capture at once, each its own calls.
func (d *deviceStream) Capturing(own bool) func() func(on interface{ Handle() (uintptr, bool) }) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.elsewhere()
	if own {
		d.handed.under, d.handed.from = true, atomic.LoadUint64(&d.handed.calls)
	}
	return func() func(on interface{ Handle() (uintptr, bool) }) {
		d.mu.Lock()
		calls := d.elsewhere() - before
		if own {
			calls = atomic.LoadUint64(&d.handed.calls) - d.handed.from
			d.handed.under, d.handed.taken = false, d.handed.taken+calls
		}
		d.mu.Unlock()
		if calls == 0 {
			return nil
		}
		return func(on interface{ Handle() (uintptr, bool) }) { d.launchedOn(on, calls) }
	}
}

// launchedOn is told that a graph with calls of d's Comm has been launched, on s. They are watched
// like others: the library may fail in them, or a peer not come.
func (d *deviceStream) launchedOn(s interface{ Handle() (uintptr, bool) }, calls uint64) {
	c := d.c
	if !c.life.enter() {
		return
	}
	defer c.life.busy.Clear()
	if c.life.failure.Load() == nil {
		on, err := c.devices.stream(c, s)
		if err != nil {
			return
		}
		c.rec.launches.add(launch{on: on, began: time.Now(),
			call: Call{Kind: KindGraph, Count: calls, Root: -1, State: Running,
				Start: time.Duration(c.eng.Now())}})
		on.watch()
	}
}

// last is the last ticket issued.
func (d *deviceStream) last() uint64 { return atomic.LoadUint64(&d.handed.ticket) }

// given is how far the stream has been given work.
func (d *deviceStream) given() progress { return progress{d.last(), d.launched.Load()} }

// idle reports whether the stream is known to have passed all its work.
func (d *deviceStream) idle() bool {
	return d.last() == d.passed.Load() && d.launched.Load() == d.ran.Load()
}

// look asks how far the stream has got: it sets a mark if there is something to learn and none is under way.
func (d *deviceStream) look() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	if d.mark == nil {
		if d.idle() || d.marking {
			return nil
		}
		if err := d.set(); err != nil || d.mark == nil {
			return err
		}
	}
	done, err := d.mark.Passed()
	if err != nil {
		d.mark = nil
		return d.fails(err)
	}
	if done {
		d.mark = nil
		d.pass(d.covers)
	}
	return nil
}

// set sets a mark after all that the stream has been given, unless none may be set now. d.mu is
// held, but not meanwhile.
func (d *deviceStream) set() error {
	covers := d.given()
	h, ok := d.s.Handle()
	if !ok {
		return d.ends(ErrArgument, errStreamGone)
	}
	d.marking, d.since = true, time.Now()
	d.mu.Unlock()
	m, err := d.c.lib.end.Mark(h)
	d.mu.Lock()
	d.marking = false
	switch {
	case errors.Is(err, engine.ErrCapturing):
		return err // what is captured runs when the graph is launched
	case errors.Is(err, engine.ErrNotNow):
		return nil
	case err != nil:
		return d.fails(err)
	}
	d.mark, d.covers = m, covers
	return nil
}

// pass notes that the stream is past that place, if that means that its calls were done. d.mu is held.
func (d *deviceStream) pass(at progress) {
	if d.c.eng.Failure() != nil {
		return // an aborted call lets the stream pass as well, with anything in its memory
	}
	if f := d.c.eng.Odd(); f != nil { // not every call waits for all ranks: a root's may not
		d.c.eng.Fail(f)
		return
	}
	if at.ticket > d.passed.Load() { // a mark may stand before what someone has synchronized with
		d.passedAt.Store(d.c.eng.Now())
		d.passed.Store(at.ticket)
		if len(d.handed.awaited) > 0 {
			d.c.rec.teller.tell(d.c.watchers.onCall, d.observed(at.ticket))
		}
	}
	if at.graphs > d.ran.Load() {
		d.ran.Store(at.graphs)
		d.c.rec.teller.tell(d.c.watchers.onCall,
			d.c.rec.launches.end(Complete, func(l *launch) bool { return l.on == d && l.place <= at.graphs },
				d.c.Name(), time.Duration(d.c.eng.Now())))
	}
}

var errStreamGone = errors.New("the stream was closed before its calls were known to be done; first Wait for the last of them")

// fails makes err the Comm's failure, unless that is being closed: its marks go then. d.mu is held.
func (d *deviceStream) fails(err error) error {
	if !d.c.life.closed.Load() {
		vendorFails(d.c, err)
	}
	e := d.ends(ErrBackend, err)
	e.loss = d.c.life.lost
	return e
}

// ends makes err what everything on the stream ends with that is not known to be done. d.mu is held.
func (d *deviceStream) ends(code Code, err error) *Error {
	d.err = d.c.refuse("Group", code, err)
	d.ended.Store(true)
	return d.err
}

// graceOfCause is how long what the library says waits for the control plane to find its cause: a
// rank that died, or made another call, and so is named. An error of the library without such a
// cause is known on its rank after this and at most one watchTick, in a graph too: some 0.3 s.
const graceOfCause = 250 * time.Millisecond

// vendorFails makes err, the library's or the device's, the failure of c, if nothing else is that led to it.
func vendorFails(c *Comm, err error) {
	for over := lived.For(graceOfCause); c.eng.Failure() == nil; time.Sleep(5 * time.Millisecond) {
		if f := c.eng.Odd(); f != nil {
			c.eng.Fail(f)
			return
		}
		if c.Size() == 1 || over() {
			c.eng.Fail(&call.Fault{Code: call.Backend, Peer: c.Rank(), Own: true, Err: vendorError(err)})
			return
		}
	}
}

// standing is how long the mark under way has not been passed, or set.
func (d *deviceStream) standing() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mark == nil && !d.marking {
		return 0
	}
	return time.Since(d.since)
}

// wait returns when the stream has passed the call with that ticket.
func (d *deviceStream) wait(ctx context.Context, ticket uint64) error {
	wait, began := backoff.Sleep{First: deviceNapMin, Most: deviceNapMax}, time.Time{}
	for {
		done, err := d.test(ticket)
		if err != nil && d.c.life.failure.Load() != nil {
			d.c.life.awaitTold(ctx, d.c.opt.Timeout)
		}
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return waitError(err, d.c)
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < deviceAwake {
			runtime.Gosched()
			continue
		}
		wait.Next()
	}
}

// lookAside looks on another goroutine.
func (d *deviceStream) lookAside() {
	if d.looking.CompareAndSwap(false, true) {
		go func() {
			d.look()
			d.looking.Store(false)
		}()
	}
}

const (
	// calls that a stream may hold, of the 1,024 that fill CUDA's, before a Wait sets its marks aside
	deviceCrowd  = 256
	deviceAwake  = 200 * time.Microsecond // of asking again and again, before sleeping
	deviceNapMin = 20 * time.Microsecond
	deviceNapMax = 500 * time.Microsecond
	watchTick    = 10 * time.Millisecond
	watchIdle    = 100 // ticks without work after which the watch ends
)

// test reports whether the stream has passed the call with that ticket.
func (d *deviceStream) test(ticket uint64) (bool, error) {
	if proc.Forked() {
		return true, d.c.Err()
	}
	if d.passed.Load() >= ticket {
		return true, nil
	}
	if d.c.life.failure.Load() != nil {
		return d.failed(ticket)
	}
	if d.last()-d.passed.Load() > deviceCrowd { // it may be full
		d.lookAside()
	} else if err := d.look(); errors.Is(err, engine.ErrCapturing) {
		return true, d.c.refuse("Group", ErrArgument, err)
	} else if err != nil && d.c.life.failure.Load() != nil {
		return d.failed(ticket)
	} else if err != nil {
		return true, err
	}
	return d.passed.Load() >= ticket, nil
}

// failed is c's failure as the queued call with that number returns it, once OnFailure has been called.
func (d *deviceStream) failed(ticket uint64) (bool, error) {
	if !d.c.life.told.Load() {
		return false, nil
	}
	return true, failureIn(d.c, nil, &call.Record{Seq: ticket, Kind: call.Group, Root: -1})
}

// settleRecord writes into r, a copy of a call's record, how far its stream has got.
func (d *deviceStream) settleRecord(r *call.Record) {
	if d != nil && r.State == uint8(Running) && d.passed.Load() >= r.Seq {
		r.State, r.End = uint8(Complete), d.passedAt.Load()
	}
}

// watch makes sure that somebody looks at the device.
func (d *deviceStream) watch() {
	if d.c.devices.watching.CompareAndSwap(false, true) {
		go watchDevice(d.c)
	}
}

// watchDevice looks, while calls of c are under way, at what nobody else sees: an error inside the library,
// a stream that stands still, ranks that make other calls.
func watchDevice(c *Comm) {
	t := time.NewTicker(watchTick)
	defer t.Stop()
	for idle := 0; ; {
		select {
		case <-c.life.done:
			return
		case <-t.C:
		}
		if c.life.closed.Load() {
			return
		}
		if err := c.lib.end.Err(); err != nil {
			vendorFails(c, err)
			return
		}
		streams := c.devices.all()
		idle++
		var still time.Duration
		for _, d := range streams {
			if d.idle() {
				continue
			}
			idle = 0
			d.lookAside() // its error is the Comm's failure, which ends the watch, or a capture, which is not under way
			standing := d.standing()
			now := c.eng.Now()
			if limit := c.opt.Timeout; limit > 0 && standing > limit &&
				c.eng.Control().Standing.IsOverdue(now-int64(standing), now) {
				plane.FailElsewhere(c.eng.Control(), fmt.Errorf("the stream has made no progress for %v", limit))
			}
			still = max(still, standing)
		}
		if still > watchTick { // the monitor compares its calls with the others' now, and tells them
			c.eng.Control().Standing.Elsewhere.Stands(c.eng.Now() - int64(still))
		} else {
			c.eng.Control().Standing.Elsewhere.Stands(0)
		}
		if idle > watchIdle {
			c.devices.watching.Store(false)
			for _, d := range streams { // issued meanwhile, by one who still saw the watch?
				if !d.idle() && c.devices.watching.CompareAndSwap(false, true) {
					idle = 0
				}
			}
			if idle > 0 {
				return
			}
		}
	}
}
