//go:build cgo

package empi

import (
	"fmt"

	"github.com/emer/etable/etensor"

	"github.com/emer/empi/mpi"
)

// kind moves tensors of one type of numbers: it gathers them, or reduces them if there is an op. It
// reports whether src is of that type.
type kind func(c *mpi.Comm, dest, src etensor.Tensor, op *mpi.Op) (is bool, err error)

var kinds = []kind{
	kindOf(func(t *etensor.Uint8) []uint8 { return t.Values }, (*mpi.Comm).AllGatherU8, (*mpi.Comm).AllReduceU8),
	kindOf(func(t *etensor.Int8) []int8 { return t.Values }, (*mpi.Comm).AllGatherI8, (*mpi.Comm).AllReduceI8),
	kindOf(func(t *etensor.Uint16) []uint16 { return t.Values }, (*mpi.Comm).AllGatherU16, (*mpi.Comm).AllReduceU16),
	kindOf(func(t *etensor.Int16) []int16 { return t.Values }, (*mpi.Comm).AllGatherI16, (*mpi.Comm).AllReduceI16),
	kindOf(func(t *etensor.Uint32) []uint32 { return t.Values }, (*mpi.Comm).AllGatherU32, (*mpi.Comm).AllReduceU32),
	kindOf(func(t *etensor.Int32) []int32 { return t.Values }, (*mpi.Comm).AllGatherI32, (*mpi.Comm).AllReduceI32),
	kindOf(func(t *etensor.Uint64) []uint64 { return t.Values }, (*mpi.Comm).AllGatherU64, (*mpi.Comm).AllReduceU64),
	kindOf(func(t *etensor.Int64) []int64 { return t.Values }, (*mpi.Comm).AllGatherI64, (*mpi.Comm).AllReduceI64),
	kindOf(func(t *etensor.Int) []int { return t.Values }, (*mpi.Comm).AllGatherInt, (*mpi.Comm).AllReduceInt),
	kindOf(func(t *etensor.Float32) []float32 { return t.Values }, (*mpi.Comm).AllGatherF32, (*mpi.Comm).AllReduceF32),
	kindOf(func(t *etensor.Float64) []float64 { return t.Values }, (*mpi.Comm).AllGatherF64, (*mpi.Comm).AllReduceF64),
}

func kindOf[E etensor.Tensor, T any](values func(E) []T, gather func(c *mpi.Comm, dest, orig []T) error,
	reduce func(c *mpi.Comm, op mpi.Op, dest, orig []T) error) kind {
	return func(c *mpi.Comm, dest, src etensor.Tensor, op *mpi.Op) (is bool, err error) {
		s, is := src.(E)
		if !is {
			return false, nil
		}
		d, alike := dest.(E)
		switch {
		case !alike:
			return true, differ(dest, src)
		case op == nil:
			return true, gather(c, values(d), values(s))
		}
		return true, reduce(c, *op, values(d), values(s))
	}
}

// move has the kind that src is of gather it, or reduce it if there is an op.
func move(c *mpi.Comm, dest, src etensor.Tensor, op *mpi.Op) error {
	for _, k := range kinds {
		if is, err := k(c, dest, src, op); is {
			return err
		}
	}
	return differ(dest, src)
}

func differ(dest, src any) error {
	return fmt.Errorf("empi: dest is %T, src is %T: they must be of one type, of numbers, truth values or strings", dest,
		src)
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
