package coll

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// The benchmark handles elements as bytes. They have their type only here and where a ccl.Buf is made, so that one small
// function is compiled for each type, and not the whole benchmark.

// runner makes a blocking call of a kind.
type runner func(ctx context.Context, c *ccl.Comm, k ccl.Kind, s Shape, dst, src []byte, op ccl.Op) error

var runs = map[ccl.Type]runner{
	ccl.TypeInt8:       run[int8],
	ccl.TypeUint8:      run[uint8],
	ccl.TypeInt16:      run[int16],
	ccl.TypeUint16:     run[uint16],
	ccl.TypeInt32:      run[int32],
	ccl.TypeUint32:     run[uint32],
	ccl.TypeInt64:      run[int64],
	ccl.TypeUint64:     run[uint64],
	ccl.TypeFloat16:    run[ccl.Float16],
	ccl.TypeBFloat16:   run[ccl.BFloat16],
	ccl.TypeFloat32:    run[float32],
	ccl.TypeFloat64:    run[float64],
	ccl.TypeFloat8E4M3: run[ccl.Float8E4M3],
	ccl.TypeFloat8E5M2: run[ccl.Float8E5M2],
}

func run[T ccl.Number](ctx context.Context, c *ccl.Comm, k ccl.Kind, s Shape, to, from []byte, op ccl.Op) error {
	dst, src := Elements[T](to), Elements[T](from)
	switch k {
	case ccl.KindAllReduce:
		return ccl.AllReduce(ctx, c, dst, src, op)
	case ccl.KindAllGather:
		return ccl.AllGather(ctx, c, dst, src)
	case ccl.KindReduceScatter:
		return ccl.ReduceScatter(ctx, c, dst, src, op)
	case ccl.KindBroadcast:
		if s.isRoot() {
			dst = src
		}
		return ccl.Broadcast(ctx, c, dst, s.Root)
	case ccl.KindReduce:
		return ccl.Reduce(ctx, c, dst, src, op, s.Root)
	case ccl.KindAllToAll:
		return ccl.AllToAll(ctx, c, dst, src)
	case ccl.KindAllToAllV:
		return ccl.AllToAllV(ctx, c, dst, s.received, src, s.sent)
	case ccl.KindGather:
		return ccl.Gather(ctx, c, dst, src, s.Root)
	case ccl.KindScatter:
		return ccl.Scatter(ctx, c, dst, src, s.Root)
	case ccl.KindSendRecv:
		return ccl.SendRecv(ctx, c, dst, s.prev(), src, s.next())
	case ccl.KindBarrier:
		return ccl.Barrier(ctx, c)
	}
	return fmt.Errorf("coll: no call of kind %v", k)
}

// Elements reads memory as elements.
func Elements[T ccl.Number](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}
