//go:build (nccl || rccl) && cgo && linux

package native

// #cgo noescape gcclIssue
// #include "native.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// C reads op.Head as it is: each index is 0, or does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(op.Head{})-C.sizeof_gccl_head]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Count)-unsafe.Offsetof(C.gccl_head{}.count)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Root)-unsafe.Offsetof(C.gccl_head{}.root)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Kind)-unsafe.Offsetof(C.gccl_head{}.kind)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Type)-unsafe.Offsetof(C.gccl_head{}._type)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Op)-unsafe.Offsetof(C.gccl_head{}.op)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.DstAt)-unsafe.Offsetof(C.gccl_head{}.dst)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.SrcAt)-unsafe.Offsetof(C.gccl_head{}.src)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.SrcN)-unsafe.Offsetof(C.gccl_head{}.srcN)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.To)-unsafe.Offsetof(C.gccl_head{}.to)]
	_ = [1]struct{}{}[unsafe.Offsetof(op.Head{}.Factor)-unsafe.Offsetof(C.gccl_head{}.factor)]
	_ = [1]struct{}{}[(op.AllReduce^C.ALL_REDUCE)|
		(op.Reduce^C.REDUCE)|(op.ReduceScatter^C.REDUCE_SCATTER)|(op.ReduceScatterV^C.REDUCE_SCATTER_V)|
		(op.Broadcast^C.BROADCAST)|(op.AllGather^C.ALL_GATHER)|(op.AllGatherV^C.ALL_GATHER_V)|
		(op.Gather^C.GATHER)|(op.GatherV^C.GATHER_V)|(op.Scatter^C.SCATTER)|(op.ScatterV^C.SCATTER_V)|
		(op.AllToAll^C.ALL_TO_ALL)|(op.AllToAllV^C.ALL_TO_ALL_V)|(op.Send^C.SEND)|(op.Recv^C.RECV)|
		(op.SendRecv^C.SEND_RECV)|
		(op.Barrier^C.BARRIER)]
	// the order of ops in compose.c
	_ = [1]struct{}{}[op.Sum|(op.Prod^1)|
		(op.Min^2)|(op.Max^3)|(op.Avg^4)|
		(op.Scaled^C.SCALED)]
	_ = [len(C.gccl_end{}.types) - int(op.Types)]struct{}{}
)

// Issue hands over calls, of which there is at least one, in one call into C.
func (e *end) Issue(stream uintptr, calls []*op.Call, how engine.How) (engine.Span, error) {
	if e.group.Strict {
		if err := checkAddresses(e, calls); err != nil {
			return nil, err
		}
	}
	if how != 0 {
		return e.issueAs(stream, calls, how)
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	var err error
	if r := e.hand(C.U(stream), calls, nil); r != C.GCCL_SUCCESS {
		err = e.lib.failure(&e.c.fault)
	}
	e.inside.Clear() // a defer takes 3 ns
	return nil, err
}

// hand gives the library calls, of which there is at least one, between the events of s, if that is
// not nil. The rank is inside. The head of one call crosses where it lies, unless it has counts or
// a factor.
func (e *end) hand(stream C.U, calls []*op.Call, s *span) C.int {
	first := &calls[0].Head
	if len(calls) > 1 || first.Op >= op.Scaled || calls[0].DC != nil {
		first = e.copied(calls)
	}
	began := s != nil && C.gcclSpan(e.c, &s.events[0], 0, stream) != 0
	r := C.gcclIssue(C.U(uintptr(unsafe.Pointer(e.c))), (*C.gccl_head)(unsafe.Pointer(first)), C.int(len(calls)),
		(*C.intptr_t)(unsafe.Pointer(unsafe.SliceData(e.counts))), stream)
	if began && r == C.GCCL_SUCCESS {
		s.known = C.gcclSpan(e.c, &s.events[0], 1, stream) != 0
	}
	return r
}

// copied are the heads of calls one behind the other, with factors as C has them, and their counts beside them.
func (e *end) copied(calls []*op.Call) *op.Head {
	e.heads, e.counts = e.heads[:0], e.counts[:0]
	for _, c := range calls {
		h := c.Head
		if h.Op.Scales() {
			h.Factor = element(h.Type, h.Factor)
		}
		e.heads = append(e.heads, h)
		e.counts = append(append(e.counts, c.DC...), c.SC...)
	}
	return &e.heads[0]
}

// element has the bytes of factor as an element of type t.
func element(t op.Type, factor float64) float64 {
	bits := math.Float64bits(factor)
	switch t {
	case op.Float16:
		bits = uint64(reduce.F32ToF16(float32(factor)))
	case op.BFloat16:
		bits = uint64(reduce.F32ToBF16(float32(factor)))
	case op.Float32:
		bits = uint64(math.Float32bits(float32(factor)))
	}
	return math.Float64frombits(bits)
}
