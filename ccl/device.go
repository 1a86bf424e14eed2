package ccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/engine"
)

// Memory is typed device memory: cuda.Mem[T], rocm.Mem[T], xpu.Mem[T]. Elem only
// carries the type.
type Memory[T Number] interface {
	Ptr() (addr uintptr, ok bool) // ok is false once freed
	Device() int
	Len() int
	Elem() T
}

// Device is a view of m. It keeps m alive, and a call on it after m was freed is refused. Of nil it is empty.
func Device[T Number](m Memory[T]) Buf {
	if m == nil {
		return Buf{typ: TypeOf[T]()}
	}
	return Buf{mem: m, count: m.Len(), typ: TypeOf[T]()}
}

// deviceMemory is what a Buf asks its owner.
type deviceMemory interface {
	Ptr() (addr uintptr, ok bool)
	Device() int
}

// deviceStream is one stream of a device, as one Comm sees it. Its calls have the Comm's call numbers as
// tickets. How far the stream has got is known from marks, of which at most one is under way: Wait, Test and
// the watch set them; a call sets none.
type deviceStream struct {
	c        *Comm
	s        Stream
	issued   uint64        // the last ticket issued; see last
	passed   atomic.Uint64 // the last that the stream is known to have passed
	passedAt atomic.Int64  // and when that was seen

	mu     sync.Mutex
	mark   engine.Mark
	covers uint64 // what mark stands after
	since  time.Time
	err    *Error // the device's
}

// stream returns c's view of s.
func (c *Comm) stream(s Stream) *deviceStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := make([]*deviceStream, 0, len(c.streams)+1) // others range over the slice that was
	for _, d := range c.streams {
		if d.s == s {
			return d
		}
		if !d.over() {
			live = append(live, d)
		}
	}
	d := &deviceStream{c: c, s: s}
	c.streams = append(live, d)
	if s, ok := s.(interface{ OnSync(func() func()) }); ok {
		s.OnSync(d.synced)
	}
	return d
}

// over reports whether the stream was closed and has passed all its calls.
func (d *deviceStream) over() bool {
	_, open := d.s.Handle()
	return !open && d.last() == d.passed.Load()
}

// synced is told that someone waits for the stream by itself: what it returns is to be called once the stream has
// passed all that it held, and is nil when the Comm needs to hear nothing more. A program that has synchronized a
// stream may close it, and no mark could be set on it then.
func (d *deviceStream) synced() func() {
	if d.c.closed.Load() || d.over() {
		return nil
	}
	ticket := d.last()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.err == nil && ticket > d.passed.Load() && !d.c.closed.Load() {
			d.pass(ticket)
		}
	}
}

// last is the last ticket issued.
func (d *deviceStream) last() uint64 { return atomic.LoadUint64(&d.issued) }

// look asks how far the stream has got: it sets a mark if there is something to learn and none is under way.
func (d *deviceStream) look() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	if d.mark == nil {
		covers := d.last()
		if covers == d.passed.Load() {
			return nil
		}
		h, ok := d.s.Handle()
		if !ok {
			return d.fails(errStreamGone)
		}
		m, err := d.c.lib.Mark(h)
		if errors.Is(err, engine.ErrCapturing) {
			return err // what is captured runs when the graph is launched
		}
		if err != nil {
			return d.fails(err)
		}
		d.mark, d.covers, d.since = m, covers, time.Now()
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

// pass notes that the stream is past the call with that ticket, if that means that the call was done. d.mu is held.
func (d *deviceStream) pass(ticket uint64) {
	if d.c.eng.Failure() != nil {
		return // an aborted call lets the stream pass as well, with anything in its memory
	}
	if f := d.c.eng.Odd(); f != nil { // not every call waits for all ranks: a root's may not
		d.c.eng.Fail(f)
		return
	}
	if ticket > d.passed.Load() { // a mark may stand before what someone has synchronized with
		d.passedAt.Store(d.c.eng.Now())
		d.passed.Store(ticket)
	}
}

var errStreamGone = errors.New("the stream was closed with calls under way")

// fails makes err the Comm's failure. d.mu is held.
func (d *deviceStream) fails(err error) error {
	d.c.vendorFails(err)
	d.err = d.c.refuse(&args{kind: KindGroup}, ErrBackend, err)
	return d.err
}

// graceOfCause is how long what the library says waits for the control plane to find its cause: a rank that
// died, or made another call, and so is named.
const graceOfCause = 250 * time.Millisecond

// vendorFails makes err, the library's or the device's, the failure of c, if nothing else is that led to it.
func (c *Comm) vendorFails(err error) {
	for until := time.Now().Add(graceOfCause); c.eng.Failure() == nil; time.Sleep(5 * time.Millisecond) {
		if f := c.eng.Odd(); f != nil {
			c.eng.Fail(f)
			return
		}
		if c.Size() == 1 || time.Now().After(until) {
			c.eng.Fail(&cpu.Fault{Code: cpu.Backend, Peer: c.Rank(), Own: true, Err: vendorError(err)})
			return
		}
	}
}

// standing is how long the mark under way has not been passed.
func (d *deviceStream) standing() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mark == nil {
		return 0
	}
	return time.Since(d.since)
}

// wait returns when the stream has passed the call with that ticket.
func (d *deviceStream) wait(ctx context.Context, ticket uint64) error {
	nap, began := deviceNapMin, time.Time{}
	for {
		done, err := d.test(ticket)
		if err != nil && d.c.failure.Load() != nil {
			d.c.awaitTold(ctx)
		}
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return waitError(err)
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < deviceAwake {
			runtime.Gosched()
			continue
		}
		time.Sleep(nap)
		nap = min(2*nap, deviceNapMax)
	}
}

const (
	deviceAwake  = 200 * time.Microsecond // of asking again and again, before sleeping
	deviceNapMin = 20 * time.Microsecond
	deviceNapMax = 500 * time.Microsecond
	watchTick    = 10 * time.Millisecond
	watchIdle    = 100 // ticks without work after which the watch ends
)

// test reports whether the stream has passed the call with that ticket.
func (d *deviceStream) test(ticket uint64) (bool, error) {
	if cpu.Forked() {
		return true, d.c.Err()
	}
	if d.passed.Load() >= ticket {
		return true, nil
	}
	if d.c.failure.Load() != nil {
		return d.failed(ticket)
	}
	if err := d.look(); errors.Is(err, engine.ErrCapturing) {
		return true, d.c.refuse(&args{kind: KindGroup}, ErrArgument, err)
	} else if err != nil && d.c.failure.Load() != nil {
		return d.failed(ticket)
	} else if err != nil {
		return true, err
	}
	return d.passed.Load() >= ticket, nil
}

// failed is c's failure as the queued call with that number returns it, once OnFailure has been called.
func (d *deviceStream) failed(ticket uint64) (bool, error) {
	if !d.c.telling.Load() {
		return false, nil
	}
	return true, d.c.failureIn(nil, &cpu.Record{Seq: ticket, Kind: cpu.Group, Root: -1})
}

// settleRecord writes into r, a copy of a call's record, how far its stream has got.
func (d *deviceStream) settleRecord(r *cpu.Record) {
	if d != nil && r.State == uint8(Running) && d.passed.Load() >= r.Seq {
		r.State, r.End = uint8(Complete), d.passedAt.Load()
	}
}

// drainDevice waits for all that was issued to streams of a device.
func (c *Comm) drainDevice(ctx context.Context) error {
	c.mu.Lock()
	streams := c.streams
	c.mu.Unlock()
	for _, d := range streams {
		if c.closed.Load() {
			return nil
		}
		if err := d.wait(ctx, d.last()); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// watchDevice looks, while calls are under way, at what nobody else sees: an error inside the library,
// a stream that stands still, ranks that make other calls.
func (c *Comm) watchDevice() {
	t := time.NewTicker(watchTick)
	defer t.Stop()
	for idle := 0; ; {
		select {
		case <-c.done:
			return
		case <-t.C:
		}
		if c.closed.Load() {
			return
		}
		if err := c.lib.Err(); err != nil {
			c.vendorFails(err)
			return
		}
		c.mu.Lock()
		streams := c.streams
		c.mu.Unlock()
		idle++
		var still time.Duration
		for _, d := range streams {
			if d.last() == d.passed.Load() {
				continue
			}
			idle = 0
			if d.look() != nil {
				continue // a failure of the Comm ends the watch; a capture is not under way
			}
			standing := d.standing()
			if limit := c.opt.Timeout; limit > 0 && standing > limit {
				c.eng.Fail(c.eng.Late(fmt.Errorf("the stream has not moved for %v", limit)))
			}
			still = max(still, standing)
		}
		if still > watchTick { // the monitor compares its calls with the others' now, and tells them
			c.eng.Stands(c.eng.Now() - int64(still))
		} else {
			c.eng.Stands(0)
		}
		if idle > watchIdle {
			c.watching.Store(false)
			for _, d := range streams { // issued meanwhile, by one who still saw the watch?
				if d.last() != d.passed.Load() && c.watching.CompareAndSwap(false, true) {
					idle = 0
				}
			}
			if idle > 0 {
				return
			}
		}
	}
}
