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
	for _, c := range calls {
		s.calls = append(s.calls, *c)
	}
	defer clear(s.calls) // lets go of the caller's memory
	at := 0
	place := func(addr *uintptr, bytes int) {
		if *addr = 0; bytes > 0 {
			*addr = uintptr(at)
			at += (bytes + alignment - 1) &^ (alignment - 1)
		}
	}
	for i := range s.calls {
		s.all = append(s.all, &s.calls[i])
		src, dst := e.extent(calls[i])
		place(&s.calls[i].SrcAt, src)
		place(&s.calls[i].DstAt, dst)
	}
	if err := s.grow(e, at); err != nil {
		return err
	}
	for i := range s.calls {
		src, dst := e.extent(calls[i])
		c, from := &s.calls[i], source(calls[i])
		c.SrcAt += uintptr(s.memory)
		c.DstAt += uintptr(s.memory)
		if src == 0 {
			c.SrcAt = 0
		} else if err := e.result(C.gcclCopy(e.c, C.U(c.SrcAt), C.U(from), C.size_t(src), C.GDEV_HOST_TO_DEVICE, s.stream)); err != nil {
			return err
		}
		if dst == 0 {
			c.DstAt = 0
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
			if err := e.result(C.gcclCopy(e.c, C.U(calls[i].DstAt), C.U(s.calls[i].DstAt), C.size_t(dst), C.GDEV_DEVICE_TO_HOST, s.stream)); err != nil {
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

// extent is how many bytes of its source this rank reads in a call, and how many it writes.
func (e *end) extent(c *op.Call) (src, dst int) {
	n := int(c.Count)
	rank, size, root := e.group.Rank, e.group.Size, e.group.Rank == int(c.Root)
	atRoot := func(k int) int {
		if root {
			return k
		}
		return 0
	}
	switch c.Kind {
	case op.AllReduce:
		src, dst = n, n
	case op.Reduce:
		src, dst = n, atRoot(n)
	case op.ReduceScatter:
		src, dst = n*size, n
	case op.ReduceScatterV:
		src, dst = sum(c.DC), c.DC[rank]
	case op.Broadcast:
		src, dst = atRoot(n), n
	case op.AllGather:
		src, dst = n, n*size
	case op.AllGatherV:
		src, dst = c.DC[rank], sum(c.DC)
	case op.Gather:
		src, dst = n, atRoot(n*size)
	case op.GatherV:
		src, dst = c.DC[rank], atRoot(sum(c.DC))
	case op.Scatter:
		src, dst = atRoot(n*size), n
	case op.ScatterV:
		src, dst = atRoot(sum(c.DC)), c.DC[rank]
	case op.AllToAll:
		src, dst = n*size, n*size
	case op.AllToAllV:
		src, dst = sum(c.SC), sum(c.DC)
	case op.Send:
		src = n
	case op.Recv:
		dst = n
	case op.SendRecv:
		src, dst = c.SrcN, n
	}
	_, width := e.lib.wire(c.Type)
	return src * width, dst * width
}

func sum(counts []int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
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
