//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include "goccl.h"
*/
import "C"

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// comm is a Comm that C has the handle of.
type comm struct {
	of     atomic.Pointer[ccl.Comm] // nil until it is open
	queued atomic.Int64             // calls that have not called back
	issues atomic.Bool              // a thread makes or queues calls: any other is refused
	mu     sync.Mutex               // held while a call is made or queued: a Comm is one goroutine's
	why    error                    // it could not be opened, or was closed before it was
	told   bool                     // the program knows why
	now    ccl.Queue                // where calls go that are waited for, once there was one
	own    ccl.Queue                // where calls go that are queued
	later  *later                   // of goccl_open_later, until it is open
	over   chan struct{}            // closed when that uses the store no more, and calls of later have called back
}

// later is a Comm that is being opened, and what is to be queued on it then.
type later struct {
	rank, size int
	cancel     context.CancelFunc
	calls      []pending
	closed     bool
}

// opened is a comm that is open.
func opened(of *ccl.Comm) *comm {
	c := new(comm)
	c.of.Store(of)
	return c
}

// size is how many ranks c has, or will have. c.mu is held.
func (c *comm) size() int {
	if c.later != nil {
		return c.later.size
	}
	return c.of.Load().Size()
}

// rank is which of them this is. c.mu is held.
func (c *comm) rank() int {
	if c.later != nil {
		return c.later.rank
	}
	return c.of.Load().Rank()
}

var (
	comms sync.Map // of handles
	last  atomic.Uint64
)

// handle gives C a number for c.
func handle(c *comm) C.goccl_comm {
	n := last.Add(1)
	comms.Store(n, c)
	return C.goccl_comm(n)
}

// find is the Comm of a handle.
func find(h C.goccl_comm) (*comm, error) {
	c, ok := comms.Load(uint64(h))
	if !ok {
		return nil, wrong("%d is no Comm, or it is closed", uint64(h))
	}
	return c.(*comm), nil
}

// ready is find of a Comm that is open.
func ready(h C.goccl_comm) (*comm, error) {
	c, err := find(h)
	if err != nil {
		return nil, err
	}
	if c.of.Load() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if why := c.tellWhy(); why != nil {
			return nil, why
		}
		return nil, wrong("the Comm is not open yet")
	}
	return c, nil
}

// number is a property of a Comm, -1 where there is none.
func number(h C.goccl_comm, f func(*ccl.Comm) int) C.int32_t {
	c, err := find(h)
	if err != nil || c.of.Load() == nil {
		return -1
	}
	return C.int32_t(f(c.of.Load()))
}

// settings are goccl_options in Go.
type settings struct {
	ccl.Options
	open  time.Duration
	store *store
}

// openAtMost is how long goccl_open waits, where the caller does not say.
const openAtMost = time.Minute

// read copies the options, of which enter.c has made this library's.
func read(o *C.goccl_options, join bool) (s settings, err error) {
	switch {
	case o == nil && !join:
		return s, wrong("the options are NULL")
	case o != nil && o.open_timeout < 0:
		return s, wrong("goccl_options.open_timeout is %v; 0 is a minute", time.Duration(o.open_timeout))
	case o == nil:
		o = new(C.goccl_options)
	}
	s.Options = ccl.Options{
		Backend: "cpu", Timeout: time.Duration(o.timeout), PeerTimeout: time.Duration(o.peer_timeout),
		RankOrder: o.rank_order != 0, Name: text(o.name),
		Spares: -1, // whatever GOCCL_SPARES says: no spare waits in goccl_join
	}
	s.open = cmp.Or(time.Duration(o.open_timeout), openAtMost)
	if join {
		return s, nil
	}
	if o.store.set == nil || o.store.get == nil {
		return s, wrong("the store has no set or no get")
	}
	if o.spares != 0 {
		if o.spares < 0 || o.spares >= C.int64_t(o.ranks) {
			return s, wrong("goccl_options.spares is %d of %d ranks", int64(o.spares), int32(o.ranks))
		}
		s.Options.Spares = int(o.spares)
	}
	s.store = &store{set: o.store.set, look: o.store.get, ctx: *(*C.uintptr_t)(unsafe.Pointer(&o.store.ctx)),
		host: cmp.Or(text(o.host), environ.HostID.Get())}
	s.store.Stored, err = boot.NewStore(s.store, text(o.prefix), int(o.rank), int(o.ranks))
	if err != nil {
		return s, wrong("%w", err)
	}
	return s, nil
}

// openTo opens a Comm by how, and writes its handle.
func openTo(o *C.goccl_options, h *C.goccl_comm, how func(o *C.goccl_options) (*comm, error)) error {
	if h == nil {
		return wrong("there is no place for the Comm")
	}
	*h = 0
	c, err := how(o)
	if err == nil {
		*h = handle(c)
	}
	return err
}

func open(o *C.goccl_options) (*comm, error) {
	return openNow(o, false, func(ctx context.Context, s *settings) (*ccl.Comm, error) {
		return ccl.NewComm(ctx, s.store, &s.Options)
	})
}

func joinJob(o *C.goccl_options) (*comm, error) {
	return openNow(o, true, func(ctx context.Context, s *settings) (*ccl.Comm, error) { return ccl.Join(ctx, &s.Options) })
}

// openNow opens a Comm by how, and waits until it is open.
func openNow(o *C.goccl_options, join bool,
	how func(ctx context.Context, s *settings) (*ccl.Comm, error)) (*comm, error) {
	seeEnvironment()
	s, err := read(o, join)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(background, s.open)
	defer cancel()
	if n := s.Options.Spares; n > 0 && s.store.Rank() >= s.store.Size()-n { // a spare waits for as long as it takes
		ctx = context.WithValue(background, meetingLimit{}, s.open)
	}
	of, err := how(ctx, &s)
	if err != nil {
		return nil, err
	}
	return opened(of), nil
}

// openLater opens a Comm behind the caller's back. What is called on it meanwhile is queued in its
// order. It does not look at C's environment, which other threads may be changing: it is called while
// the program runs, and not as it starts.
func openLater(o *C.goccl_options) (*comm, error) {
	s, err := read(o, false)
	switch {
	case err != nil:
		return nil, err
	case s.Options.Spares > 0:
		return nil, wrong("goccl_open_later has no spares")
	}
	ctx, cancel := context.WithTimeout(background, s.open)
	l := &later{cancel: cancel, rank: s.store.Rank(), size: s.store.Size()}
	c := &comm{later: l, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		defer cancel()
		of, err := ccl.NewComm(ctx, s.store, &s.Options)
		if c.begin(of, err) && of != nil {
			of.Close()
		}
	}()
	return c, nil
}

// mayWait is why this thread may not wait for calls of c: it is in a callback of c's own, which they
// come after.
func (c *comm) mayWait() error {
	if c.queued.Load() > 0 && calledBack(c) { // a call counts as queued until its callback has returned
		return wrong("this thread is in a callback of the same Comm, and would wait for itself: queue the call, or make it when the callback has returned")
	}
	return nil
}

// alone locks c.mu while nothing is queued: what waits for all queued calls with the lock held would
// wait for ever for a callback that queues one.
func (c *comm) alone() error {
	if err := c.mayWait(); err != nil {
		return err
	}
	for c.mu.Lock(); c.queued.Load() > 0; c.mu.Lock() {
		c.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}

// makeChild makes a Comm of one, and writes its handle.
func makeChild(h C.goccl_comm, child *C.goccl_comm, f func(*comm) (*ccl.Comm, error)) error {
	if child == nil {
		return wrong("there is no place for the new Comm")
	}
	*child = 0
	c, err := ready(h)
	if err != nil {
		return err
	}
	of, err := f(c)
	if err == nil && of != nil {
		*child = handle(opened(of))
	}
	return err
}

// childOf is makeChild by a call that no other of the Comm's goes beside.
func childOf(h C.goccl_comm, child *C.goccl_comm, f func(*ccl.Comm) (*ccl.Comm, error)) error {
	return makeChild(h, child, func(c *comm) (*ccl.Comm, error) {
		if err := c.alone(); err != nil {
			return nil, err
		}
		defer c.mu.Unlock()
		return f(c.of.Load())
	})
}

// closeComm takes the handle away first: a call that comes later finds none.
func closeComm(h C.goccl_comm) error {
	found, ok := comms.LoadAndDelete(uint64(h))
	if !ok {
		return wrong("%d is no Comm, or it is closed", uint64(h))
	}
	c := found.(*comm)
	of := c.leave()
	if c.over != nil && !calledBack(c) {
		<-c.over
	}
	if of == nil {
		return c.untold()
	}
	return of.Close()
}

// tellWhy is why c could not be opened, which the program is told. c.mu is held.
func (c *comm) tellWhy() error {
	c.told = true
	return c.why
}

// untold is why c could not be opened, unless the program has been told, or has closed it itself.
func (c *comm) untold() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told {
		return nil
	}
	return c.tellWhy()
}

// leave is the Comm that is to be closed or aborted: without the lock, which a blocking call holds
// that this is to end. It is nil if there is none yet; then there will be none, and the opening ends
// soon.
func (c *comm) leave() *ccl.Comm {
	if of := c.of.Load(); of != nil {
		return of
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.later != nil {
		c.later.closed = true
		c.later.cancel()
	}
	return c.of.Load()
}

func abort(h C.goccl_comm, why string) error {
	c, err := find(h)
	if err != nil {
		return err
	}
	if of := c.leave(); of != nil {
		of.Abort(errors.New(cmp.Or(why, "no reason given")))
	}
	return nil
}

// failed is why the Comm has failed, or could not be opened.
func (c *comm) failed() error {
	if of := c.of.Load(); of != nil {
		return of.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tellWhy()
}

func alloc(h C.goccl_comm, bytes C.uint64_t, memory *unsafe.Pointer) error {
	if memory == nil {
		return wrong("there is no place for the memory's address")
	}
	*memory = nil
	c, err := ready(h)
	if err != nil {
		return err
	}
	if bytes > 1<<62 {
		return wrong("%d bytes are more than there can be", uint64(bytes))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := ccl.MakeSlice[byte](background, c.of.Load(), int(bytes))
	if err == nil && len(s) > 0 {
		*memory = unsafe.Pointer(&s[0])
	}
	return err
}
