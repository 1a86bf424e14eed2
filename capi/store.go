//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"
typedef int32_t (*set_function)(void *ctx, const char *key, const void *value, uint64_t n);
typedef int32_t (*get_function)(void *ctx, const char *key, int64_t timeout, uintptr_t value);
static int32_t call_set(set_function f, uintptr_t ctx, const char *key, const void *value, uint64_t n) { return f((void *)ctx, key, value, n); }
static int32_t call_get(get_function f, uintptr_t ctx, const char *key, int64_t timeout, uintptr_t value) { return f((void *)ctx, key, timeout, value); }
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime/cgo"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/boot"
)

// store is the boot.Store of a program's callbacks, and the bootstrap over it.
type store struct {
	*boot.Stored
	set   C.set_function
	look  C.get_function
	ctx   C.uintptr_t // not a pointer, since it may be any number
	host  string
	mu    sync.Mutex
	open  bool // in AllGather, the only time when callbacks are called
	calls sync.WaitGroup
}

// meetingLimit is the key of the limit in the context of a spare, which limits its meeting alone.
type meetingLimit struct{}

// HostID is what the caller says of where this rank runs.
func (s *store) HostID() string { return s.host }

// AllGather is Stored's, and returns once no callback runs: what they use is the program's own
// again when the Comm is open, or closed.
func (s *store) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	if limit, ok := ctx.Value(meetingLimit{}).(time.Duration); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s.setOpen(true)
	defer s.calls.Wait()
	defer s.setOpen(false)
	return s.Stored.AllGather(ctx, mine)
}

func (s *store) setOpen(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = is
}

// enter begins what calls callbacks. It is refused where AllGather has not waited for it.
func (s *store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return errLate
	}
	s.calls.Add(1)
	return nil
}

var errLate = errors.New("the meeting is over")

var errNoCallback = errors.New("the caller's store has no such callback")

// Set is the callback set.
func (s *store) Set(_ context.Context, key string, value []byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	k, v := C.CString(key), C.CBytes(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(v)
	if rc := C.call_set(s.set, s.ctx, k, v, C.uint64_t(len(value))); rc != 0 {
		return fmt.Errorf("the callback set returned %d", int32(rc))
	}
	return nil
}

// answer is where goccl_value puts what get has found.
type answer struct {
	value []byte
	given bool
}

// askFor is how long the callback get is asked to wait at most, so that the end of ctx, which it
// knows nothing of, does not have to wait for it.
const askFor = 100 * time.Millisecond

// Get is the callback get, again and again.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		wait := askFor
		if until, ok := ctx.Deadline(); ok {
			wait = max(min(wait, time.Until(until)), time.Millisecond)
		}
		asked := time.Now()
		value, err := s.get(ctx, key, wait)
		// A callback that returns before half of the time has failed. A callback that took longer
		// has waited, and is asked again.
		if err == nil || ctx.Err() != nil || time.Since(asked) < wait/2 {
			return value, err
		}
	}
}

// get is the callback get.
func (s *store) get(ctx context.Context, key string, wait time.Duration) ([]byte, error) {
	k, a := C.CString(key), new(answer)
	defer C.free(unsafe.Pointer(k))
	h := cgo.NewHandle(a)
	defer h.Delete()
	rc := C.call_get(s.look, s.ctx, k, C.int64_t(wait), C.uintptr_t(h))
	switch {
	case rc != 0 && ctx.Err() != nil:
		return nil, fmt.Errorf("the callback get returned %d: %w", int32(rc), ctx.Err())
	case rc != 0:
		return nil, fmt.Errorf("the callback get returned %d", int32(rc))
	case !a.given:
		return nil, errors.New("the callback get returned 0 without a call of goccl_value")
	}
	return a.value, nil
}

// Wait is not needed here.
func (s *store) Wait(context.Context, ...string) error { return errNoCallback }

// Add is not needed here.
func (s *store) Add(context.Context, string, int64) (int64, error) { return 0, errNoCallback }

// mostValue is how large a value of the store may be.
const mostValue = 1 << 30

// putValue is goccl_value.
func putValue(value C.uintptr_t, bytes unsafe.Pointer, n C.uint64_t) {
	a, ok := cgo.Handle(value).Value().(*answer)
	if !ok || n > mostValue || bytes == nil && n > 0 {
		return
	}
	a.value, a.given = C.GoBytes(bytes, C.int(n)), true
}
