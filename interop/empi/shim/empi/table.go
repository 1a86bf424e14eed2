//go:build cgo

package empi

import (
	"github.com/emer/etable/etable"

	"github.com/emer/empi/mpi"
)

// GatherTableRows puts the rows of src of all ranks into dest, by rank. All ranks must have the same number of rows. If
// dest has other columns than src, it gets those of src. What goes wrong is logged (mpi.LogErrors).
func GatherTableRows(dest, src *etable.Table, comm *mpi.Comm) {
	fit(dest, src, comm.Size()*src.Rows)
	for i, s := range src.Cols {
		if GatherTensorRows(dest.Cols[i], s, comm) != nil {
			return // comm has failed, or the other ranks are in another call
		}
	}
}

// ReduceTable reduces the values of src of all ranks into dest, which gets the columns and rows of
// src. Strings are left out.
func ReduceTable(dest, src *etable.Table, comm *mpi.Comm, op mpi.Op) {
	fit(dest, src, src.Rows)
	for i, s := range src.Cols {
		if ReduceTensor(dest.Cols[i], s, comm, op) != nil {
			return
		}
	}
}

// fit gives dest the columns of src, and that many rows.
func fit(dest, src *etable.Table, rows int) {
	if len(dest.Cols) != len(src.Cols) {
		dest.SetFromSchema(src.Schema(), rows)
	} else {
		dest.SetNumRows(rows)
	}
}
