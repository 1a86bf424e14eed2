package op

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What follows from a kind: by name, whether it reduces, has a root, is between two ranks, counts
// blocks, exchanges, is without data, and the kind with equal counts.
func TestKinds(t *testing.T) {
	const yes, no = true, false
	for i, tc := range []struct {
		name, flag                                            string
		reduces, rooted, pairwise, blocks, exchanges, nothing bool
		equal                                                 Kind
	}{
		{"unknown", "unknown", no, no, no, no, no, no, 0},
		{"AllReduce", "allreduce", yes, no, no, no, no, no, AllReduce},
		{"Reduce", "reduce", yes, yes, no, no, no, no, Reduce},
		{"ReduceScatter", "reducescatter", yes, no, no, yes, no, no, ReduceScatter},
		{"ReduceScatterV", "reducescatterv", yes, no, no, no, no, no, ReduceScatter},
		{"Broadcast", "broadcast", no, yes, no, no, no, no, Broadcast},
		{"AllGather", "allgather", no, no, no, yes, no, no, AllGather},
		{"AllGatherV", "allgatherv", no, no, no, no, no, no, AllGather},
		{"Gather", "gather", no, yes, no, yes, no, no, Gather},
		{"GatherV", "gatherv", no, yes, no, no, no, no, Gather},
		{"Scatter", "scatter", no, yes, no, yes, no, no, Scatter},
		{"ScatterV", "scatterv", no, yes, no, no, no, no, Scatter},
		{"AllToAll", "alltoall", no, no, no, yes, yes, no, AllToAll},
		{"AllToAllV", "alltoallv", no, no, no, no, yes, no, AllToAll},
		{"Send", "send", no, no, yes, no, no, no, Send},
		{"Recv", "recv", no, no, yes, no, no, no, Recv},
		{"SendRecv", "sendrecv", no, no, yes, no, yes, no, SendRecv},
		{"Barrier", "barrier", no, no, no, no, no, yes, Barrier},
		{"Split", "split", no, no, no, no, no, yes, Split},
		{"Group", "group", no, no, no, no, no, yes, Group},
		{"Window", "window", no, no, no, no, no, yes, Window},
		{"Graph", "graph", no, no, no, no, no, yes, Graph},
		{"MonitoredBarrier", "monitoredbarrier", no, no, no, no, no, yes, MonitoredBarrier},
		{"Replace", "replace", no, no, no, no, no, yes, Replace},
		{"unknown", "unknown", no, no, no, no, no, no, Kinds},
	} {
		k := Kind(i)
		assert.Equal(t, []any{tc.name, tc.flag, tc.reduces, tc.rooted, tc.pairwise, tc.blocks, tc.exchanges, tc.nothing, tc.equal},
			[]any{k.String(), k.Flag(), k.Reduces(), k.Rooted(), k.Pairwise(), k.Blocks(), k.Exchanges(), k.Dataless(), k.Equal()})
		assert.Equal(t, i > 0 && k < Kinds, k.Valid(), tc.name)
	}
	for k := Kinds; k != 0; k++ {
		assert.Equal(t, "unknown", k.String())
		assert.False(t, k.Valid() || k.Reduces() || k.Rooted() || k.Pairwise() || k.Blocks() || k.Exchanges() || k.Dataless(), "%d", k)
	}
}
