package oneccl

import (
	"fmt"

	"github.com/goccl/goccl/internal/engine"
	kernel "github.com/goccl/goccl/internal/reduce"
)

// types are oneCCL's element types, by ours; -1 where it has none.
var types = [...]int32{
	engine.None: -1, engine.Int8: 0, engine.Uint8: 1, engine.Int16: -1, engine.Uint16: -1, engine.Int32: 2, engine.Uint32: 3,
	engine.Int64: 4, engine.Uint64: 5, engine.Float16: 6, engine.BFloat16: 9, engine.Float32: 7, engine.Float64: 8,
	engine.Float8E4M3: -1, engine.Float8E5M2: -1,
}

// ops are oneCCL's operators, by ours: Max comes before Min there. Avg is Sum and a division.
var ops = [...]int32{engine.Sum: 0, engine.Prod: 1, engine.Min: 3, engine.Max: 2, engine.Avg: 0}

// sizeOf is the size of an element in bytes, 1 where there is no type.
func sizeOf(t engine.Type) uintptr {
	return uintptr(max(kernel.Type(t-1).Size(), 1))
}

// carrier is the type as which elements are moved: one of their size that every version has.
func carrier(t engine.Type) int32 {
	switch sizeOf(t) {
	case 2:
		return types[engine.BFloat16]
	case 4:
		return types[engine.Int32]
	case 8:
		return types[engine.Int64]
	}
	return types[engine.Uint8]
}

// arithmetic is how elements are reduced; ok is false where oneCCL cannot.
func arithmetic(t engine.Type, op engine.Op) (typ, redop int32, ok bool) {
	if int(t) >= len(types) || types[t] < 0 || int(op) >= len(ops) {
		return 0, 0, false
	}
	return types[t], ops[op], true
}

// reduces reports whether calls of kind k combine elements.
func reduces(k engine.Kind) bool { return k >= engine.AllReduce && k <= engine.ReduceScatterV }

// supports is why oneCCL cannot make a call, or nil. device is that of the Comm, -1 for the CPU plugin.
func supports(k engine.Kind, t engine.Type, op engine.Op, host bool, device int) error {
	switch {
	case k == 0 || k > engine.Barrier:
		return fmt.Errorf("oneCCL has no calls of kind %d", k)
	case !host && device < 0:
		return fmt.Errorf("oneCCL runs on its CPU plugin, because there is no SYCL device here: it takes only host memory")
	case !reduces(k):
		return nil
	}
	if op == engine.Scaled {
		return fmt.Errorf("oneCCL has no scaling operator: use sum, then multiply")
	}
	if _, _, ok := arithmetic(t, op); !ok {
		return fmt.Errorf("oneCCL moves %s, but does not reduce it", kernel.Type(t-1))
	}
	if op == engine.Avg && !host {
		return fmt.Errorf("oneCCL has no avg: on device memory use sum, and divide in a kernel of your own")
	}
	return nil
}
