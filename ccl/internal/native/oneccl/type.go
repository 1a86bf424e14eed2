package oneccl

import (
	"fmt"

	"github.com/goccl/goccl/internal/op"
)

// types are oneCCL's element types; -1 where it has none.
var types = [op.Types]int32{
	op.None: -1, op.Int8: 0, op.Uint8: 1, op.Int16: -1, op.Uint16: -1, op.Int32: 2, op.Uint32: 3, op.Int64: 4,
	op.Uint64:  5,
	op.Float16: 6, op.BFloat16: 9, op.Float32: 7, op.Float64: 8, op.Float8E4M3: -1, op.Float8E5M2: -1,
	op.Bool: -1, op.Complex64: -1, op.Complex128: -1,
}

// ops are oneCCL's operators: Max comes before Min there. Avg is Sum and a division. It has none on bits: -1.
var ops = [op.Ops]int32{op.Sum: 0, op.Prod: 1, op.Min: 3, op.Max: 2, op.Avg: 0, op.BAnd: -1, op.BOr: -1, op.BXor: -1}

// sizeOf is the size of an element in bytes, 1 where there is no type.
func sizeOf(t op.Type) uintptr { return uintptr(max(t.Size(), 1)) }

// carrier is the type as which elements are moved: one of their size that every version has.
func carrier(t op.Type) int32 {
	switch sizeOf(t) {
	case 2:
		return types[op.BFloat16]
	case 4:
		return types[op.Int32]
	case 8:
		return types[op.Int64]
	}
	return types[op.Uint8]
}

// arithmetic is how elements are reduced; ok is false where oneCCL cannot.
func arithmetic(t op.Type, o op.Op) (typ, redop int32, ok bool) {
	if t >= op.Types || types[t] < 0 || o >= op.Ops || ops[o] < 0 {
		return 0, 0, false
	}
	return types[t], ops[o], true
}

// supports is why oneCCL cannot make a call, or nil. device is that of the Comm, -1 for the CPU plugin.
func supports(k op.Kind, t op.Type, o op.Op, host bool, device int) error {
	switch {
	case k == 0 || k > op.Barrier:
		return fmt.Errorf("oneCCL has no calls of kind %d", k)
	case !host && device < 0:
		return fmt.Errorf("oneCCL runs on its CPU plugin, because there is no SYCL device here: it takes only host memory")
	case sizeOf(t) > 8:
		return fmt.Errorf("oneCCL has no elements of %d bytes, which %s has", sizeOf(t), t)
	case !k.Reduces():
		return nil
	case o.Scales():
		return fmt.Errorf("oneCCL has no scaling operator: use sum, then multiply")
	}
	if _, _, ok := arithmetic(t, o); !ok {
		if t.Valid() && types[t] < 0 {
			return fmt.Errorf("oneCCL moves %s, but does not reduce it", t)
		}
		return fmt.Errorf("oneCCL does not reduce %s by %s", t, o)
	}
	if o == op.Avg && !host {
		return fmt.Errorf("oneCCL has no avg: on device memory use sum, and divide in a kernel of your own")
	}
	return nil
}
