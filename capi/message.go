//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include <stdlib.h>
#include "goccl.h"
static void call_arrived(goccl_arrived f, uintptr_t ctx, int32_t from, const goccl_error *e) { f((void *)ctx, from, e); }
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
)

// Messages and Comms of some ranks are no calls of their Comm: nothing here takes its lock.

// message begins the message that m describes.
func message(h C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t) (ccl.Message, error) {
	c, err := ready(h)
	if err != nil {
		return ccl.Message{}, err
	}
	of := c.of.Load()
	switch {
	case m == nil:
		return ccl.Message{}, wrong("the message is NULL")
	case m.kind != C.GOCCL_SEND && m.kind != C.GOCCL_RECV:
		return ccl.Message{}, wrong("kind %d is no message: there are GOCCL_SEND and GOCCL_RECV", int32(m.kind))
	case m._type <= 0 || m._type > C.GOCCL_COMPLEX128:
		return ccl.Message{}, wrong("there is no type %d", int32(m._type))
	case timeout < 0:
		return ccl.Message{}, wrong("the timeout is %v; 0 is none", time.Duration(timeout))
	case m.kind == C.GOCCL_SEND && m.root == C.GOCCL_ANY_SOURCE:
		return ccl.Message{}, wrong("%w", op.NoRank(op.Send, int(m.root), of.Size()))
	}
	l := ccl.LinkTo(of, int(m.root), int(tag)).Within(time.Duration(timeout))
	if m.kind == C.GOCCL_SEND {
		at, n, err := memory("src", m._type, (*unsafe.Pointer)(unsafe.Pointer(&m.src)), m.src_n)
		if err != nil {
			return ccl.Message{}, wrong("%w", err)
		}
		return l.Send(view(m._type, at, n)), nil
	}
	at, n, err := memory("dst", m._type, &m.dst, m.dst_n)
	if err != nil {
		return ccl.Message{}, wrong("%w", err)
	}
	return l.Recv(view(m._type, at, n)), nil
}

// postMessage begins a message that calls back when it has ended. If it returns an error, it does not.
func postMessage(h C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t, done C.goccl_arrived,
	ctx C.uintptr_t) error {
	x, err := message(h, m, tag, timeout)
	if err == nil {
		x.OnDone(func(err error) { tellArrived(done, ctx, x.From(), err) })
	}
	return err
}

// passMessage waits for a message.
func passMessage(h C.goccl_comm, m *C.goccl_args, tag C.int32_t, timeout C.int64_t, from *C.int32_t) error {
	x, err := message(h, m, tag, timeout)
	if err == nil {
		err = x.Wait(background)
	}
	if from != nil {
		*from = C.int32_t(x.From())
	}
	return err
}

// tellArrived is tell of a message.
func tellArrived(done C.goccl_arrived, ctx C.uintptr_t, from int, err error) {
	if err == nil {
		C.call_arrived(done, ctx, C.int32_t(from), nil)
		return
	}
	e := (*C.goccl_error)(C.malloc(C.sizeof_goccl_error))
	defer C.free(unsafe.Pointer(e))
	fill(e, err)
	C.call_arrived(done, ctx, C.int32_t(from), e)
}

// within is a context for so many nanoseconds; 0 is no limit.
func within(timeout C.int64_t) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return background, func() {}
	}
	return context.WithTimeout(background, time.Duration(timeout))
}

// replace is goccl_replace.
func replace(h C.goccl_comm, timeout C.int64_t, child *C.goccl_comm) error {
	return childOf(h, child, func(c *ccl.Comm) (*ccl.Comm, error) {
		if timeout < 0 {
			return nil, wrong("the timeout is %v; 0 is none", time.Duration(timeout))
		}
		ctx, cancel := within(timeout)
		defer cancel()
		return c.Replace(ctx)
	})
}

// subset is goccl_subset.
func subset(h C.goccl_comm, ranks *C.int32_t, n, tag C.int32_t, timeout C.int64_t, child *C.goccl_comm) error {
	return makeChild(h, child, func(c *comm) (*ccl.Comm, error) {
		of := c.of.Load()
		switch {
		case n < 1 || ranks == nil:
			return nil, wrong("a list of %d ranks", int32(n))
		case int(n) > of.Size():
			return nil, wrong("a list of %d ranks, in a Comm of %d", int32(n), of.Size())
		case timeout < 0:
			return nil, wrong("the timeout is %v; 0 is none", time.Duration(timeout))
		}
		list := make([]int, n)
		for i, r := range unsafe.Slice((*int32)(unsafe.Pointer(ranks)), int(n)) {
			list[i] = int(r)
		}
		ctx, cancel := within(timeout)
		defer cancel()
		return ccl.Subset(ctx, of, list, int(tag))
	})
}
