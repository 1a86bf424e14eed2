package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers of kinds, types and operators go between processes, and to the tables of the libraries: they never change.
func TestNumbers(t *testing.T) {
	for want, kind := range []Kind{AllReduce, Reduce, ReduceScatter, ReduceScatterV, Broadcast, AllGather, AllGatherV, Gather, GatherV, Scatter, ScatterV,
		AllToAll, AllToAllV, Send, Recv, SendRecv, Barrier, Split, GroupOfCalls, SymmetricWindow, GraphLaunch, Shrink} {
		require.EqualValues(t, want+1, kind)
	}
	for want, typ := range []Type{None, Int8, Uint8, Int16, Uint16, Int32, Uint32, Int64, Uint64, Float16, BFloat16, Float32, Float64, Float8E4M3, Float8E5M2} {
		require.EqualValues(t, want, typ)
	}
	for want, op := range []Op{Sum, Prod, Min, Max, Avg, Scaled} {
		require.EqualValues(t, want, op)
	}
}
