package mpi_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

type meters float32

func TestTypeOf(t *testing.T) {
	for _, tc := range []struct {
		got  mpi.Type
		name string
		size int
	}{
		{mpi.TypeOf[int8](), "int8", 1}, {mpi.TypeOf[uint8](), "uint8", 1},
		{mpi.TypeOf[int16](), "int16", 2}, {mpi.TypeOf[uint16](), "uint16", 2},
		{mpi.TypeOf[int32](), "int32", 4}, {mpi.TypeOf[uint32](), "uint32", 4},
		{mpi.TypeOf[int64](), "int64", 8}, {mpi.TypeOf[uint64](), "uint64", 8},
		{mpi.TypeOf[int](), "int64", 8}, {mpi.TypeOf[uint](), "uint64", 8},
		{mpi.TypeOf[mpi.Float16](), "float16", 2}, {mpi.TypeOf[mpi.BFloat16](), "bfloat16", 2},
		{mpi.TypeOf[float32](), "float32", 4}, {mpi.TypeOf[float64](), "float64", 8},
		{mpi.TypeOf[meters](), "float32", 4},
		{mpi.Type(0), "none", 0}, {mpi.Type(99), "Type(99)", 0},
	} {
		require.Equal(t, tc.name, tc.got.String())
		require.Equal(t, tc.size, tc.got.Size(), tc.name)
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "AllReduce", mpi.KindAllReduce.String())
	require.Equal(t, "SendRecv", mpi.KindSendRecv.String())
	require.Equal(t, "Kind(0)", mpi.Kind(0).String())
	require.Equal(t, "max", mpi.Max.String())
	require.Equal(t, "Op(7)", mpi.Op(7).String())
	require.Equal(t, "MPI_THREAD_SERIALIZED", mpi.Serialized.String())
	require.Equal(t, "MPI_ERR_ROOT", mpi.ErrRoot.Error())
	require.Equal(t, "mpi.Class(99)", mpi.Class(99).Error())
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	e := &mpi.Error{Op: "Bcast", Class: mpi.ErrRoot, Code: 7, Text: "Invalid root"}
	require.EqualError(t, e, "mpi: Bcast: Invalid root (MPI_ERR_ROOT)")
	require.ErrorIs(t, e, mpi.ErrRoot)
	require.NotErrorIs(t, e, mpi.ErrRank)
	e = &mpi.Error{Op: "Recv", Class: mpi.ErrAbandoned, Text: "not begun", Err: cause}
	require.EqualError(t, e, "mpi: Recv: not begun: cause")
	require.ErrorIs(t, e, cause)
	require.ErrorIs(t, e, mpi.ErrAbandoned)
}
