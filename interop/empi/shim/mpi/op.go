package mpi

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// Op is what a reduction does with the values of the ranks.
type Op int

// The operations. The logical ones and those on bits are for integers.
const (
	OpSum Op = iota
	OpMax
	OpMin
	OpProd // product
	OpLAND // logical and: 1 where no value is 0
	OpLOR  // logical or: 1 where a value is not 0
	OpBAND // and of the bits
	OpBOR  // or of the bits
)

var names = [...]string{"OpSum", "OpMax", "OpMin", "OpProd", "OpLAND", "OpLOR", "OpBAND", "OpBOR"}

// String is op's name.
func (op Op) String() string {
	if op < 0 || int(op) >= len(names) {
		return fmt.Sprintf("Op(%d)", int(op))
	}
	return names[op]
}

// arithmetic are the operations that goccl has.
var arithmetic = map[Op]ccl.Op{OpSum: ccl.Sum, OpMax: ccl.Max, OpMin: ccl.Min, OpProd: ccl.Prod}

// number is an element that can be reduced.
type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | int | float32 | float64
}

// reduceAll puts the reduction of the srcs into dst, on every rank.
func reduceAll[T number](c *ccl.Comm, op Op, dst, src []T) error {
	ctx := context.Background()
	if o, ok := arithmetic[op]; ok {
		return ccl.AllReduce(ctx, c, dst, src, o)
	}
	switch op {
	case OpLAND, OpLOR, OpBAND, OpBOR:
		if T(1)/2 != 0 {
			return fmt.Errorf("%v of %T: it is for integers", op, *new(T))
		}
	default:
		return fmt.Errorf("%v: no such operation", op)
	}
	if op == OpLAND || op == OpLOR { // the minimum or maximum of truth values
		truth := make([]T, len(src))
		for i, v := range src {
			if v != 0 {
				truth[i] = 1
			}
		}
		if op == OpLAND {
			return ccl.AllReduce(ctx, c, dst, truth, ccl.Min)
		}
		return ccl.AllReduce(ctx, c, dst, truth, ccl.Max)
	}
	if len(dst) != len(src) {
		return fmt.Errorf("dest has %d elements, orig %d", len(dst), len(src))
	}
	n := len(src) * int(unsafe.Sizeof(*new(T)))
	all := make([]byte, c.Size()*n)
	if err := ccl.AllGather(ctx, c, all, bytesOf(src)); err != nil {
		return err
	}
	into := bytesOf(dst)
	copy(into, all[:n])
	for i, b := range all[n:] {
		if op == OpBAND {
			into[i%n] &= b
		} else {
			into[i%n] |= b
		}
	}
	return nil
}

// bytesOf is s as bytes.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
