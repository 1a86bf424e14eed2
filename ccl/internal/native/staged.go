//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/internal/engine"
)

// staging is device memory for calls on host memory, and a stream for them. It is made on first use.
type staging struct {
	stream C.U
	made   bool
	memory C.U
	size   int
	calls  []engine.Call
}

// alignment of what lies in the staging memory: what NCCL likes best, and what it reads at once.
const alignment = 256

// Run copies the sources to the device, makes the calls there and copies the results back. The copy back
// begins when all is done, so that the wait for peers is one that ctx, an error and Abort can end.
func (e *end) Run(ctx context.Context, calls []engine.Call) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usable(); err != nil {
		return err
	}
	s := &e.staged
	s.calls = append(s.calls[:0], calls...)
	at := 0
	place := func(addr *uintptr, bytes int) {
		if *addr = 0; bytes > 0 {
			*addr = uintptr(at)
			at += (bytes + alignment - 1) &^ (alignment - 1)
		}
	}
	for i := range s.calls {
		src, dst := e.extent(&calls[i])
		place(&s.calls[i].Src, src)
		place(&s.calls[i].Dst, dst)
	}
	if err := s.grow(e, at); err != nil {
		return err
	}
	for i := range s.calls {
		src, dst := e.extent(&calls[i])
		c, from := &s.calls[i], source(&calls[i])
		c.Src += uintptr(s.memory)
		c.Dst += uintptr(s.memory)
		if src == 0 {
			c.Src = 0
		} else if err := e.result(C.gcclCopy(e.c, C.U(c.Src), C.U(from), C.size_t(src), C.GDEV_HOST_TO_DEVICE, s.stream)); err != nil {
			return err
		}
		if dst == 0 {
			c.Dst = 0
		}
	}
	if err := waits(e, func() C.int { return e.hand(s.stream, s.calls, nil) }); err != nil {
		return err
	}
	if err := e.pass(ctx, s.stream); err != nil {
		return err
	}
	for i := range s.calls {
		if _, dst := e.extent(&calls[i]); dst > 0 {
			if err := e.result(C.gcclCopy(e.c, C.U(calls[i].Dst), C.U(s.calls[i].Dst), C.size_t(dst), C.GDEV_DEVICE_TO_HOST, s.stream)); err != nil {
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
func source(c *engine.Call) uintptr {
	if c.Src == 0 && c.Kind == engine.Broadcast {
		return c.Dst
	}
	return c.Src
}

// extent is how many bytes of its source this rank reads in a call, and how many it writes.
func (e *end) extent(c *engine.Call) (src, dst int) {
	rank, size, root := e.group.Rank, e.group.Size, e.group.Rank == c.Root
	atRoot := func(n int) int {
		if root {
			return n
		}
		return 0
	}
	switch c.Kind {
	case engine.AllReduce:
		src, dst = c.Count, c.Count
	case engine.Reduce:
		src, dst = c.Count, atRoot(c.Count)
	case engine.ReduceScatter:
		src, dst = c.Count*size, c.Count
	case engine.ReduceScatterV:
		src, dst = sum(c.DC), c.DC[rank]
	case engine.Broadcast:
		src, dst = atRoot(c.Count), c.Count
	case engine.AllGather:
		src, dst = c.Count, c.Count*size
	case engine.AllGatherV:
		src, dst = c.DC[rank], sum(c.DC)
	case engine.Gather:
		src, dst = c.Count, atRoot(c.Count*size)
	case engine.GatherV:
		src, dst = c.DC[rank], atRoot(sum(c.DC))
	case engine.Scatter:
		src, dst = atRoot(c.Count*size), c.Count
	case engine.ScatterV:
		src, dst = atRoot(sum(c.DC)), c.DC[rank]
	case engine.AllToAll:
		src, dst = c.Count*size, c.Count*size
	case engine.AllToAllV:
		src, dst = sum(c.SC), sum(c.DC)
	case engine.Send:
		src = c.Count
	case engine.Recv:
		dst = c.Count
	case engine.SendRecv:
		src, dst = c.Sent, c.Count
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
