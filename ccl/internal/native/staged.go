//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// staging is device memory for calls on host memory, and a stream for them. It is made on first use.
type staging struct {
	stream C.U
	made   bool
	memory C.U
	size   int
	calls  []op.Call // copies, with the addresses of the memory
	all    []*op.Call
}

// alignment of what lies in the staging memory: what NCCL likes best, and what it reads at once.
const alignment = 256

func aligned(bytes int) int { return (bytes + alignment - 1) &^ (alignment - 1) }

// Run copies the sources to the device, makes the calls there and copies the results back. The copy back
// begins when all is done, so that the wait for peers is one that ctx, an error and Abort can end.
func (e *end) Run(ctx context.Context, calls []*op.Call) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usable(); err != nil {
		return err
	}
	s := &e.staged
	s.calls, s.all = s.calls[:0], s.all[:0]
	total := 0
	for _, c := range calls {
		src, dst := e.extent(c)
		s.calls, total = append(s.calls, *c), total+aligned(src)+aligned(dst)
	}
	defer clear(s.calls) // lets go of the caller's memory
	if err := s.grow(e, total); err != nil {
		return err
	}
	free := uintptr(s.memory)
	take := func(bytes int) (addr uintptr) {
		if bytes > 0 {
			addr, free = free, free+uintptr(aligned(bytes))
		}
		return addr
	}
	for i := range s.calls {
		src, dst := e.extent(calls[i])
		c := &s.calls[i]
		s.all, c.SrcAt, c.DstAt = append(s.all, c), take(src), take(dst)
		if src == 0 {
			continue
		}
		if err := e.result(C.gcclCopy(e.c, C.U(c.SrcAt), C.U(source(calls[i])), C.size_t(src), C.GDEV_HOST_TO_DEVICE,
			s.stream)); err != nil {
			return err
		}
	}
	if err := waits(e, func() C.int { return e.hand(s.stream, s.all, nil) }); err != nil {
		return err
	}
	if err := e.pass(ctx, s.stream); err != nil {
		return err
	}
	for i := range s.calls {
		if _, dst := e.extent(calls[i]); dst > 0 {
			if err := e.result(C.gcclCopy(e.c, C.U(calls[i].DstAt), C.U(s.calls[i].DstAt), C.size_t(dst),
				C.GDEV_DEVICE_TO_HOST, s.stream)); err != nil {
				return err
			}
		}
	}
	return e.pass(ctx, s.stream)
}

// pass waits until the stream has come to its present end. mu is held.
func (e *end) pass(ctx context.Context, stream C.U) error {
	var m engine.Mark
	for i := 0; ; i++ {
		if m == nil {
			mark, err := e.Mark(uintptr(stream))
			if err == nil {
				m = mark
			} else if !errors.Is(err, engine.ErrNotNow) {
				return err
			}
		}
		if m != nil {
			if done, err := m.Passed(); done || err != nil {
				return err
			}
		}
		if err := e.usable(); err != nil {
			return err
		}
		if i%64 == 63 {
			if err := stop(ctx, e.Err); err != nil {
				return fmt.Errorf("%s: %w", e.lib.v.name, err)
			}
		}
		pause(i)
	}
}

// source is where a call reads: a broadcast's root has its data in either.
func source(c *op.Call) uintptr {
	if c.SrcAt == 0 && c.Kind == op.Broadcast {
		return c.DstAt
	}
	return c.SrcAt
}

// extent is how many bytes c reads and writes on this rank: those of the memory that op.Check has
// left it, and the root alone reads what it broadcasts.
func (e *end) extent(c *op.Call) (src, dst int) {
	_, width := e.lib.wire(c.Type)
	if src = c.SrcN * width; c.Kind == op.Broadcast && e.group.Rank != int(c.Root) {
		src = 0
	}
	return src, c.DstN * width
}

// grow makes the memory at least so large, and the stream.
func (s *staging) grow(e *end, bytes int) error {
	if !s.made {
		if err := e.result(C.gcclStream(e.c, &s.stream)); err != nil {
			return err
		}
		s.made = true
	}
	if bytes <= s.size {
		return nil
	}
	if s.size > 0 {
		if err := e.result(C.gcclFree(e.c, s.memory)); err != nil {
			return err
		}
		s.memory, s.size = 0, 0
	}
	bytes = max(bytes, 1<<20)
	if err := e.result(C.gcclAlloc(e.c, &s.memory, C.size_t(bytes))); err != nil {
		return err
	}
	s.size = bytes
	return nil
}

// free gives all of it back.
func (s *staging) free(c *C.gccl_end) {
	if s.size > 0 {
		C.gcclFree(c, s.memory)
	}
	if s.made {
		C.gcclStreamFree(c, s.stream)
	}
	*s = staging{}
}
