//go:build (nccl || rccl) && cgo && linux

package native

// #cgo noescape gcclIssue
// #cgo nocallback gcclIssue
// #include "native.h"
import "C"

import (
	"unsafe"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// What compose.c takes the kinds to be.
const (
	_ = uint(op.AllReduce-1) + uint(1-op.AllReduce)
	_ = uint(op.AllToAll-12) + uint(12-op.AllToAll)
	_ = uint(op.Barrier-17) + uint(17-op.Barrier)
)

// Issue hands over calls in one call into C.
func (e *end) Issue(stream uintptr, calls []*op.Call) error {
	if err := strict(e, calls); err != nil {
		return err
	}
	if len(calls) == 1 && calls[0].Kind == op.AllReduce && !calls[0].Op.Scales() { // the call that is worth a path of its own
		return e.allReduce(C.U(stream), calls[0])
	}
	return e.issue(C.U(stream), calls, nil)
}

// strict is what is wrong with the addresses of calls, where the user has asked for that.
func strict(e *end, calls []*op.Call) error {
	if !e.group.Strict {
		return nil
	}
	return checkAddresses(e, calls)
}

// allReduce is issue of one call whose arguments cross as they are: to C, and not into an array first. They are numbers alone, so
// cgo needs no noescape for them, and nocallback would cost 2 ns.
func (e *end) allReduce(stream C.U, k *op.Call) error {
	typ, _ := e.lib.wire(k.Type)
	if err := e.enter(); err != nil {
		return err
	}
	r := C.gcclAllReduce(C.U(uintptr(unsafe.Pointer(e.c))), C.U(k.SrcAt), C.U(k.DstAt), C.size_t(k.Count), typ, ops[k.Op], stream)
	if r != C.GCCL_SUCCESS {
		defer e.inside.Clear()
		return e.result(r)
	}
	e.inside.Clear() // a defer takes 3 ns
	return nil
}

func (e *end) issue(stream C.U, calls []*op.Call, s *span) error {
	if len(calls) == 0 {
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Clear()
	return e.result(e.hand(stream, calls, s))
}

// encode is c in the library's terms. A type that the library does not have, or not on every
// device, is moved as bytes.
func (e *end) encode(k *C.gccl_call, c *op.Call) {
	typ, width := e.lib.wire(c.Type)
	scale := 1
	if typ < 0 || c.Type.Float8() && !c.Kind.Reduces() {
		typ, scale, width = C.GCCL_UINT8, width, 1
	}
	k.kind, k._type, k.op, k.root, k.to, k.width = C.int(c.Kind), typ, wireOp(c.Op), C.int(c.Root), C.int(c.To), C.int(width)
	k.count, k.sent = C.size_t(int(c.Count)*scale), C.size_t(c.SrcN*scale)
	k.dst, k.src = C.U(c.DstAt), C.U(c.SrcAt)
	if c.Op.Scales() {
		encodeFactor(k, c.Type, c.Factor)
	}
	k.dc = e.encodeCounts(c.DC, scale)
	k.sc = e.encodeCounts(c.SC, scale)
}

// encodeFactor writes the factor as an element of the type.
func encodeFactor(k *C.gccl_call, t op.Type, factor float64) {
	p := unsafe.Pointer(&k.factor)
	*(*uint64)(p) = 0
	switch t {
	case op.Float16:
		*(*uint16)(p) = reduce.F32ToF16(float32(factor))
	case op.BFloat16:
		*(*uint16)(p) = reduce.F32ToBF16(float32(factor))
	case op.Float32:
		*(*float32)(p) = float32(factor)
	default:
		*(*float64)(p) = factor
	}
}

// encodeCounts appends counts to those of the Issue and returns their place there.
func (e *end) encodeCounts(counts []int, scale int) C.size_t {
	at := C.size_t(len(e.counts))
	for _, n := range counts {
		e.counts = append(e.counts, C.size_t(n*scale))
	}
	return at
}

// ops are the library's numbers of the operators.
var ops = [op.Ops]C.int{op.Sum: C.GCCL_SUM, op.Prod: C.GCCL_PROD, op.Min: C.GCCL_MIN, op.Max: C.GCCL_MAX, op.Avg: C.GCCL_AVG}

// wireOp is the library's number of o; of one that scales what gcclScaled replaces.
func wireOp(o op.Op) C.int {
	if o.Scales() {
		return C.GCCL_SCALED
	}
	return ops[o]
}
