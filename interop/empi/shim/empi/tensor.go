//go:build cgo

package empi

import (
	"fmt"
	"slices"

	"github.com/emer/etable/etensor"

	"github.com/emer/empi/mpi"
)

// GatherTensorRows puts the rows of src of all ranks into dest, by rank. dest has the type and
// cells of src, and gets as many rows as it needs; all ranks must have the same number.
func GatherTensorRows(dest, src etensor.Tensor, comm *mpi.Comm) error {
	rows, _ := src.RowCellSize()
	dest.SetNumRows(comm.Size() * rows)
	switch s := src.(type) {
	case *etensor.String:
		d, ok := dest.(*etensor.String)
		if !ok {
			return differ(dest, src)
		}
		return GatherTensorRowsString(d, s, comm)
	case *etensor.Bits:
		d, ok := dest.(*etensor.Bits)
		if !ok {
			return differ(dest, src)
		}
		mine := bytesOf(s)
		all := make([]uint8, comm.Size()*len(mine))
		if err := comm.AllGatherU8(all, mine); err != nil {
			return err
		}
		return setBits(d, all)
	}
	return move(comm, dest, src, nil)
}

// GatherTensorRowsString is GatherTensorRows of strings.
func GatherTensorRowsString(dest, src *etensor.String, comm *mpi.Comm) error {
	rows, _ := src.RowCellSize()
	dest.SetNumRows(comm.Size() * rows)
	mine := make([]int, len(src.Values))
	for i, s := range src.Values {
		mine[i] = len(s)
	}
	lengths := make([]int, comm.Size()*len(mine))
	if err := comm.AllGatherInt(lengths, mine); err != nil {
		return err
	}
	if len(lengths) == 0 {
		return nil
	}
	if len(dest.Values) != len(lengths) {
		return fmt.Errorf("empi: dest has room for %d strings, and %d came", len(dest.Values), len(lengths))
	}
	width := slices.Max(lengths) // each string takes as much as the longest: one call for all
	packed := make([]byte, len(mine)*width)
	for i, s := range src.Values {
		copy(packed[i*width:], s)
	}
	all := make([]byte, len(lengths)*width)
	if err := comm.AllGatherU8(all, packed); err != nil {
		return err
	}
	for i, n := range lengths {
		dest.Values[i] = string(all[i*width : i*width+n])
	}
	return nil
}

// ReduceTensor reduces the values of src of all ranks into dest, which gets the shape of src. Strings are left as they
// are. Of truth values the sum and the maximum are the logical or, the product and the minimum the logical and.
func ReduceTensor(dest, src etensor.Tensor, comm *mpi.Comm, op mpi.Op) error {
	if _, ok := src.(*etensor.String); ok {
		return nil
	}
	if dest.Len() != src.Len() {
		dest.CopyShapeFrom(src)
	}
	if s, ok := src.(*etensor.Bits); ok {
		d, ok := dest.(*etensor.Bits)
		if !ok {
			return differ(dest, src)
		}
		switch op {
		case mpi.OpSum, mpi.OpLOR, mpi.OpBOR:
			op = mpi.OpMax
		case mpi.OpProd, mpi.OpLAND, mpi.OpBAND:
			op = mpi.OpMin
		}
		b := bytesOf(s)
		if err := comm.AllReduceU8(op, b, nil); err != nil {
			return err
		}
		return setBits(d, b)
	}
	return move(comm, dest, src, &op)
}
