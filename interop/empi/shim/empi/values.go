//go:build cgo

package empi

import (
	"fmt"

	"github.com/emer/etable/etensor"

	"github.com/emer/empi/mpi"
)

// values are those of a tensor of numbers, as a slice.
func values(t etensor.Tensor) any {
	switch t := t.(type) {
	case *etensor.Uint8:
		return t.Values
	case *etensor.Int8:
		return t.Values
	case *etensor.Uint16:
		return t.Values
	case *etensor.Int16:
		return t.Values
	case *etensor.Uint32:
		return t.Values
	case *etensor.Int32:
		return t.Values
	case *etensor.Uint64:
		return t.Values
	case *etensor.Int64:
		return t.Values
	case *etensor.Int:
		return t.Values
	case *etensor.Float32:
		return t.Values
	case *etensor.Float64:
		return t.Values
	}
	return nil
}

// into makes a call that fills dest, which must be of orig's type.
func into[T any](call func(dest, orig []T) error, dest any, orig []T) error {
	d, ok := dest.([]T)
	if !ok {
		return differ(dest, orig)
	}
	return call(d, orig)
}

func reduce[T any](call func(op mpi.Op, dest, orig []T) error, op mpi.Op, dest any, orig []T) error {
	return into(func(dest, orig []T) error { return call(op, dest, orig) }, dest, orig)
}

func differ(dest, src any) error {
	return fmt.Errorf("empi: dest is %T, src is %T: they must be of one type, of numbers, truth values or strings", dest, src)
}

// bytesOf are truth values, one to a byte.
func bytesOf(t *etensor.Bits) []uint8 {
	b := make([]uint8, t.Len())
	for i := range b {
		if t.Value1D(i) {
			b[i] = 1
		}
	}
	return b
}

// setBits is the other way round.
func setBits(t *etensor.Bits, b []uint8) error {
	if t.Len() != len(b) {
		return fmt.Errorf("empi: dest has room for %d truth values, and %d came", t.Len(), len(b))
	}
	for i, v := range b {
		t.Set1D(i, v != 0)
	}
	return nil
}
