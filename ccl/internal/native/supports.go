//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/internal/engine"
)

// types are the element types: the library's number, or -1; the bytes of one; and the name in errors.
var types = [...]struct {
	wire, width int
	name        string
}{
	engine.None:       {C.GCCL_UINT8, 1, "bytes"},
	engine.Int8:       {C.GCCL_INT8, 1, "int8"},
	engine.Uint8:      {C.GCCL_UINT8, 1, "uint8"},
	engine.Int16:      {-1, 2, "int16"},
	engine.Uint16:     {-1, 2, "uint16"},
	engine.Int32:      {C.GCCL_INT32, 4, "int32"},
	engine.Uint32:     {C.GCCL_UINT32, 4, "uint32"},
	engine.Int64:      {C.GCCL_INT64, 8, "int64"},
	engine.Uint64:     {C.GCCL_UINT64, 8, "uint64"},
	engine.Float16:    {C.GCCL_FLOAT16, 2, "half"},
	engine.BFloat16:   {C.GCCL_BFLOAT16, 2, "bfloat16"},
	engine.Float32:    {C.GCCL_FLOAT32, 4, "float"},
	engine.Float64:    {C.GCCL_FLOAT64, 8, "double"},
	engine.Float8E4M3: {C.GCCL_FLOAT8E4M3, 1, "f8e4m3"},
	engine.Float8E5M2: {C.GCCL_FLOAT8E5M2, 1, "f8e5m2"},
}

// wire is the library's number for a type, -1 if it has none, and the bytes of an element.
func (l *library) wire(t engine.Type) (typ, width int) {
	e := &types[t]
	if e.wire >= C.GCCL_FLOAT8E4M3 && l.version < l.v.fp8 {
		return -1, e.width
	}
	return e.wire, e.width
}

// computes reports whether calls of a kind do arithmetic. What only moves moves bytes.
func computes(k engine.Kind) bool {
	switch k {
	case engine.AllReduce, engine.Reduce, engine.ReduceScatter, engine.ReduceScatterV:
		return true
	}
	return false
}

func isFP8(t engine.Type) bool { return t == engine.Float8E4M3 || t == engine.Float8E5M2 }

// Supports depends on the library's version, which is the same on all ranks, and on the least of
// their devices.
func (e *end) Supports(k engine.Kind, t engine.Type, op engine.Op, host bool) error {
	if !computes(k) {
		return nil
	}
	l := e.lib
	if int(t) >= len(types) || int(op) >= len(ops) {
		return fmt.Errorf("%s has no such type or operator", l.Version())
	}
	switch typ, _ := l.wire(t); {
	case op == engine.Scaled && (t < engine.Float16 || t > engine.Float64):
		return fmt.Errorf("%s does not scale %s here", l.Version(), types[t].name)
	case op == engine.Scaled && l.t.RedOpCreatePreMulSum == nil:
		return fmt.Errorf("%s has no ncclRedOpCreatePreMulSum; that needs %s 2.11", l.Version(), l.v.title)
	case typ >= 0 && isFP8(t) && e.least.level < l.v.fp8Level:
		return fmt.Errorf("%s moves %s, but does not reduce it on every rank's device: that needs compute capability %d.%d, and one has %d.%d", l.Version(), types[t].name,
			l.v.fp8Level/10, l.v.fp8Level%10, e.least.level/10, e.least.level%10)
	case typ >= 0:
		return nil
	case isFP8(t):
		return fmt.Errorf("%s moves %s, but does not reduce it; that needs %s %s", l.Version(), types[t].name, l.v.title, version(l.v.fp8))
	}
	return fmt.Errorf("%s has no %s: it moves it as bytes, but does not reduce it", l.Version(), types[t].name)
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
func (e *end) InPlace(k engine.Kind) error {
	switch k {
	case engine.AllToAll, engine.AllToAllV, engine.SendRecv:
		if !e.least.copies {
			return errors.New("use a second buffer: in place it needs MallocAsync, which the device runtime of a rank lacks")
		}
	}
	return nil
}
