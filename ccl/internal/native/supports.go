//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/internal/op"
)

// types are the library's numbers of the element types, -1 where it has none.
var types = [op.Types]C.int{
	op.None: C.GCCL_UINT8, op.Int8: C.GCCL_INT8, op.Uint8: C.GCCL_UINT8, op.Int16: -1, op.Uint16: -1,
	op.Int32: C.GCCL_INT32, op.Uint32: C.GCCL_UINT32, op.Int64: C.GCCL_INT64, op.Uint64: C.GCCL_UINT64,
	op.Float16: C.GCCL_FLOAT16, op.BFloat16: C.GCCL_BFLOAT16, op.Float32: C.GCCL_FLOAT32, op.Float64: C.GCCL_FLOAT64,
	op.Float8E4M3: C.GCCL_FLOAT8E4M3, op.Float8E5M2: C.GCCL_FLOAT8E5M2,
	op.Bool: -1, op.Complex64: -1, op.Complex128: -1,
}

// wire is the library's number for a type, -1 if it has none, and the bytes of an element.
func (l *library) wire(t op.Type) (typ C.int, width int) {
	width = max(t.Size(), 1)
	if t.Float8() && l.version < l.v.fp8 {
		return -1, width
	}
	return types[t], width
}

// Supports depends on the library's version, which is the same on all ranks, and on the least of
// their devices.
func (e *end) Supports(k op.Kind, t op.Type, o op.Op, host bool) error {
	if !k.Reduces() {
		return nil
	}
	l := e.lib
	if t >= op.Types || !o.Valid() {
		return fmt.Errorf("%s has no such type or operator", l.Version())
	}
	switch typ, _ := l.wire(t); {
	case o.Bitwise():
		return fmt.Errorf("%s has no bitwise operators", l.Version())
	case o.Scales() && !op.Reduces(t, o):
		return fmt.Errorf("%s does not scale %s here", l.Version(), t)
	case o.Scales() && l.t.RedOpCreatePreMulSum == nil:
		return fmt.Errorf("%s has no ncclRedOpCreatePreMulSum; that needs %s 2.11", l.Version(), l.v.title)
	case typ >= 0 && t.Float8() && e.least.level < l.v.fp8Level:
		return fmt.Errorf("%s moves %s, but does not reduce it on every rank's device: that needs compute capability %d.%d, and one has %d.%d", l.Version(), t,
			l.v.fp8Level/10, l.v.fp8Level%10, e.least.level/10, e.least.level%10)
	case typ >= 0:
		return nil
	case t.Float8():
		return fmt.Errorf("%s moves %s, but does not reduce it; that needs %s %s", l.Version(), t, l.v.title,
			version(l.v.fp8))
	}
	return fmt.Errorf("%s has no %s: it moves it as bytes, but does not reduce it", l.Version(), t)
}

// anyLevel is the level of a device that cannot be asked, or of a library to which it does not
// matter.
const anyLevel = math.MaxInt32

// Agree is about the compute capability of the ranks' devices, as 80 of 8.0, where the library asks
// for one; and 1 if a rank's runtime allocates memory in the order of a stream, which calls in place
// need where there are other ranks, or 0.
func (e *end) Agree(least func(levels []int64) error) error {
	levels := []int64{anyLevel, 0}
	var cc C.int
	if e.lib.v.fp8Level > 0 && C.gcclCapability(e.c, &cc) == C.GCCL_SUCCESS && cc > 0 {
		levels[0] = int64(cc)
	}
	if e.group.Size == 1 || e.c.dev.MallocAsync != nil && e.c.dev.FreeAsync != nil {
		levels[1] = 1
	}
	if err := least(levels); err != nil {
		return err
	}
	e.least.level, e.least.copies = levels[0], levels[1] > 0
	return nil
}

// least is what the devices of all ranks have at least.
type least struct {
	level  int64 // the compute capability
	copies bool  // the runtime copies the sources of calls in place
}

// InPlace is nil, or why calls of that kind need a second buffer: see inplace.c.
func (e *end) InPlace(k op.Kind) error {
	switch k {
	case op.AllToAll, op.AllToAllV, op.SendRecv:
		if !e.least.copies {
			return errors.New("use a second buffer: in place it needs MallocAsync, which the device runtime of a rank lacks")
		}
	}
	return nil
}
