//go:build oneccl && cgo && linux

package oneccl

/*
#include "call.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	kernel "github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/internal/sycl"
)

// comm is one rank's end of a communicator.
type comm struct {
	engine.Lacking
	lib    *library
	name   uint64 // the same on all ranks
	handle uintptr
	device int // -1: the CPU plugin
	strict bool
	xpu    unsafe.Pointer // the SYCL shim's functions, a *gxpu in C memory

	// What carryOut works on, and what has become of it.
	plan  plan
	queue uintptr // that the plan's steps go to; 0: host memory
	job   *job
	out   outcome

	scratch scratch

	once sync.Once
	gone chan struct{} // closed by Abort
	shut sync.Once

	marks marks
}

// outcome is what has become of a plan: the library's result, the step that has it, and what the library said.
type outcome struct {
	rc, at C.int
	text   []byte
}

// scratch is memory for plans whose steps need some, made when a plan needs more than there is.
type scratch struct {
	host   []byte
	device []uintptr // blocks; what calls on queues may still use stays until free
	room   uintptr   // of the last block
}

var _ = [1]struct{}{}[unsafe.Sizeof(step{})-unsafe.Sizeof(C.goneccl_step{})]

// functions are what steps call, by name.
var functions = [...]string{
	allReduce: "onecclAllReduce", reduce: "onecclReduce", broadcast: "onecclBroadcast",
	reduceScatter: "onecclReduceScatter",
	allGather:     "onecclAllGather", allToAll: "onecclAllToAll", allToAllV: "onecclAllToAllV", scatter: "onecclScatter",
	send: "onecclSend", recv: "onecclRecv", move: "queue::memcpy",
}

func (e *comm) Supports(k op.Kind, t op.Type, o op.Op, host bool) error {
	return supports(k, t, o, host, e.device)
}

// carryOut makes the calls of the plan. It runs on the worker.
func (e *comm) carryOut() {
	var counts *C.U
	if len(e.plan.counts) > 0 {
		counts = (*C.U)(unsafe.Pointer(&e.plan.counts[0]))
	}
	e.out.rc = C.goneccl_run(C.U(e.handle), C.U(e.queue), (*C.gxpu)(e.xpu),
		(*C.goneccl_step)(unsafe.Pointer(&e.plan.steps[0])),
		C.int(len(e.plan.steps)), counts, &e.out.at, (*C.char)(unsafe.Pointer(&e.out.text[0])), textRoom)
}

// Run makes calls on host memory.
func (e *comm) Run(ctx context.Context, calls []*op.Call) error {
	if err := e.prepare(calls, true); err != nil {
		return err
	}
	if need := int(e.plan.need); need > 0 {
		e.plan.place(e.scratch.onHost(need))
	}
	e.queue = 0
	if err := e.make(ctx); err != nil {
		return err
	}
	for i := range calls {
		e.average(calls[i])
	}
	return nil
}

// Issue makes calls on device memory.
func (e *comm) Issue(stream uintptr, calls []*op.Call, _ engine.How) (engine.Span, error) {
	if stream == 0 {
		return nil, errors.New("calls on device memory need a queue (xpu.Queue)")
	}
	if err := e.prepare(calls, false); err != nil {
		return nil, err
	}
	if e.strict {
		for i := range calls {
			if err := e.known(calls[i]); err != nil {
				return nil, err
			}
		}
	}
	if e.plan.need > 0 {
		at, err := e.scratch.onDevice(e.device, e.plan.need)
		if err != nil {
			return nil, err
		}
		e.plan.place(at)
	}
	e.queue = stream
	return nil, e.make(context.Background())
}

// prepare plans calls.
func (e *comm) prepare(calls []*op.Call, host bool) error {
	select {
	case <-e.gone: // a call that was given up may still read the plan
		return errAborted
	default:
	}
	for i := range calls {
		c := calls[i]
		if err := e.Supports(c.Kind, c.Type, c.Op, host); err != nil {
			return err
		}
	}
	if err := e.plan.make(calls); err != nil {
		return err
	}
	for i := range e.plan.steps {
		s := &e.plan.steps[i]
		// oneCCL crashes on null, and takes a root of -1 for one of its own.
		if s.peer < 0 && (s.what == reduce || s.what == broadcast || s.what == scatter || s.what >= send &&
			s.what <= recv) || int(s.peer) >= e.plan.size {
			return fmt.Errorf("%s: rank %d; the ranks are 0 to %d", functions[s.what], s.peer, e.plan.size-1)
		}
	}
	return nil
}

// make has the plan carried out.
func (e *comm) make(ctx context.Context) error {
	if len(e.plan.steps) == 0 {
		return nil
	}
	for i := range e.plan.steps {
		if s := &e.plan.steps[i]; s.count > 0 && (s.dst == 0 && s.what != send || s.src == 0 && s.what != recv) {
			return fmt.Errorf("%s: a null address", functions[s.what])
		}
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, e.Abort)()
	}
	if err := e.lib.run(e.job, e.gone); err != nil {
		if cause := ctx.Err(); cause != nil {
			return fmt.Errorf("%w (%w)", cause, err)
		}
		return err
	}
	if e.out.rc != 0 {
		return e.lib.failure(functions[e.plan.steps[e.out.at].what], int(e.out.rc), e.out.text)
	}
	return nil
}

var errAborted = errors.New("the communicator was aborted")

// addresses are those that a call which was given up may still use, as pointers: they keep Go memory.
func (e *comm) addresses() []unsafe.Pointer {
	if e.queue != 0 {
		return nil // the memory is the device's
	}
	list := make([]unsafe.Pointer, 0, 2*len(e.plan.steps))
	for i := range e.plan.steps {
		s := &e.plan.steps[i]
		list = append(list, *(*unsafe.Pointer)(unsafe.Pointer(&s.dst)), *(*unsafe.Pointer)(unsafe.Pointer(&s.src)))
	}
	return list
}

// average ends Avg: the sum is there, and is divided where a rank has it.
func (e *comm) average(c *op.Call) {
	if c.Op != op.Avg || !c.Kind.Reduces() {
		return
	}
	n := int(c.Count)
	switch {
	case c.Kind == op.Reduce && e.plan.rank != int(c.Root):
		return
	case c.Kind == op.ReduceScatterV:
		n = c.DC[e.plan.rank]
	}
	if n > 0 {
		kernel.Scale(c.Type)(*(*unsafe.Pointer)(unsafe.Pointer(&c.DstAt)), n, e.plan.size)
	}
}

// known refuses addresses of memory that is not SYCL's.
func (e *comm) known(c *op.Call) error {
	for name, p := range map[string]uintptr{"dst": c.DstAt, "src": c.SrcAt} {
		if p == 0 {
			continue
		}
		kind, err := sycl.KindOf(e.device, p)
		if err != nil {
			return err
		}
		if kind == sycl.Unknown {
			return fmt.Errorf("%s is not device memory: %#x is not from xpu.Alloc, or was freed", name, p)
		}
	}
	return nil
}

// onHost is so many bytes of host memory.
func (s *scratch) onHost(need int) uintptr {
	if len(s.host) < need {
		s.host = make([]byte, need)
	}
	return uintptr(unsafe.Pointer(&s.host[0]))
}

// onDevice is so many bytes of memory on a device.
func (s *scratch) onDevice(device int, need uintptr) (uintptr, error) {
	if s.room < need {
		room := max(need, 2*s.room, 4096)
		p, err := sycl.New(device, sycl.OnDevice, int(room))
		if err != nil {
			return 0, err
		}
		s.device, s.room = append(s.device, p), room
	}
	return s.device[len(s.device)-1], nil
}

// free gives the device's memory back.
func (s *scratch) free(device int) (err error) {
	for _, p := range s.device {
		err = errors.Join(err, sycl.Free(device, p))
	}
	return err
}

// Abort gives up the call under way, if there is one, and refuses all that follow. The thread of a
// call that is given up stays inside the library.
func (e *comm) Abort() { e.once.Do(func() { close(e.gone) }) }

// Close leaves the communicator. onecclCommDestroy waits for all ranks, which Close must not do, and no other call
// could be made meanwhile; so unless this rank is alone, what the library holds (45 KiB, 7 descriptors and
// a thread on rank 0) stays until a later New finds that all ranks have closed, or until the process ends.
func (e *comm) Close() (err error) {
	e.shut.Do(func() {
		select {
		case <-e.gone:
			return // a call may still be inside
		default:
		}
		e.Abort()
		if e.plan.size == 1 {
			err = e.destroy(nil) // there is nobody that it could wait for
		} else {
			e.lib.leave(e)
		}
		err = errors.Join(err, e.scratch.free(e.device), e.marks.close())
	})
	return err
}

// destroy frees the communicator, once all its ranks do, or stop is closed.
func (e *comm) destroy(stop <-chan struct{}) error {
	text, rc := make([]byte, textRoom), C.int(0)
	err := e.lib.run(newJob(func() {
		rc = C.goneccl_destroy(C.U(e.handle), (*C.char)(unsafe.Pointer(&text[0])), textRoom)
	}), stop)
	if err == nil {
		err = e.lib.failure("onecclCommDestroy", int(rc), text)
	}
	return err
}

func (e *comm) Native() uintptr { return e.handle }
