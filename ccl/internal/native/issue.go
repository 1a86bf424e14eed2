//go:build (nccl || rccl) && cgo && linux

package native

// #cgo noescape gcclIssue
// #cgo nocallback gcclIssue
// #include "native.h"
import "C"

import (
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/reduce"
)

// What compose.c takes the kinds to be.
const (
	_ = uint(engine.AllReduce-1) + uint(1-engine.AllReduce)
	_ = uint(engine.AllToAll-12) + uint(12-engine.AllToAll)
	_ = uint(engine.Barrier-17) + uint(17-engine.Barrier)
)

// Issue hands over calls in one call into C.
func (e *end) Issue(stream uintptr, calls []engine.Call, how engine.How) (engine.Span, error) {
	if err := strict(e, calls); err != nil {
		return nil, err
	}
	if how != 0 {
		return e.issueAs(stream, calls, how)
	}
	if len(calls) == 1 && calls[0].Kind == engine.AllReduce && calls[0].Op != engine.Scaled { // the call that is worth a path of its own
		return nil, e.allReduce(C.U(stream), &calls[0])
	}
	return nil, e.issue(C.U(stream), calls, nil)
}

// strict is what is wrong with the addresses of calls, where the user has asked for that.
func strict(e *end, calls []engine.Call) error {
	if !e.group.Strict {
		return nil
	}
	return checkAddresses(e, calls)
}

// allReduce is issue of one call whose arguments cross as they are: to C, and not into an array first. They are numbers alone, so
// cgo needs no noescape for them, and nocallback would cost 2 ns.
func (e *end) allReduce(stream C.U, k *engine.Call) error {
	typ, _ := e.lib.wire(k.Type)
	if err := e.enter(); err != nil {
		return err
	}
	r := C.gcclAllReduce(C.U(uintptr(unsafe.Pointer(e.c))), C.U(k.Src), C.U(k.Dst), C.size_t(k.Count), C.int(typ), ops[k.Op], stream)
	if r != C.GCCL_SUCCESS {
		defer e.inside.Clear()
		return e.result(r)
	}
	e.inside.Clear() // a defer takes 3 ns
	return nil
}

func (e *end) issue(stream C.U, calls []engine.Call, s *span) error {
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
func (e *end) encode(k *C.gccl_call, c *engine.Call) {
	typ, width := e.lib.wire(c.Type)
	scale := 1
	if typ < 0 || isFP8(c.Type) && !computes(c.Kind) {
		typ, scale, width = C.GCCL_UINT8, width, 1
	}
	k.kind, k._type, k.op, k.root, k.to, k.width = C.int(c.Kind), C.int(typ), ops[c.Op], C.int(c.Root), C.int(c.To), C.int(width)
	k.count, k.sent = C.size_t(c.Count*scale), C.size_t(c.Sent*scale)
	k.dst, k.src = C.U(c.Dst), C.U(c.Src)
	if c.Op == engine.Scaled {
		encodeFactor(k, c.Type, c.Factor)
	}
	k.dc = e.encodeCounts(c.DC, scale)
	k.sc = e.encodeCounts(c.SC, scale)
}

// encodeFactor writes the factor as an element of the type.
func encodeFactor(k *C.gccl_call, t engine.Type, factor float64) {
	p := unsafe.Pointer(&k.factor)
	*(*uint64)(p) = 0
	switch t {
	case engine.Float16:
		*(*uint16)(p) = reduce.F32ToF16(float32(factor))
	case engine.BFloat16:
		*(*uint16)(p) = reduce.F32ToBF16(float32(factor))
	case engine.Float32:
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

// ops are the library's, by engine.Op.
var ops = [...]C.int{engine.Sum: C.GCCL_SUM, engine.Prod: C.GCCL_PROD, engine.Min: C.GCCL_MIN, engine.Max: C.GCCL_MAX, engine.Avg: C.GCCL_AVG, engine.Scaled: C.GCCL_SCALED}
