package algo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestChoose(t *testing.T) {
	const mib = 1 << 20
	each, shared := func(n int) Topology { return Blocks(n, 1) }, func(n int) Topology { return Blocks(n/4, 4) }
	ring := Table{{Kind: op.AllReduce, Name: "ring"}}
	for _, tc := range []struct {
		k         op.Kind
		bytes     int64
		t         Topology
		rankOrder bool
		tab       Table
		want      string
	}{
		{op.AllReduce, 0, each(2), false, nil, "doubling"},
		{op.AllReduce, 512 * kib, each(2), false, nil, "doubling"},
		{op.AllReduce, 512*kib + 2, each(2), false, nil, "ring"},
		{op.AllReduce, 512 * kib, each(3), false, nil, "dissemination"},
		{op.AllReduce, 512*kib + 1, each(3), false, nil, "ring"},
		{op.AllReduce, 32 * kib, each(8), false, nil, "doubling"},
		{op.AllReduce, 32*kib + 1, each(8), false, nil, "halving"},
		{op.AllReduce, 128 * kib, each(7), false, nil, "doubling"},
		{op.AllReduce, 128*kib + 1, each(7), false, nil, "dissemination"},
		{op.AllReduce, 512 * kib, each(8), false, nil, "halving"},
		{op.AllReduce, 512*kib + 1, each(8), false, nil, "ring"},
		{op.AllReduce, 32 * kib * 32, each(32), false, nil, "halving"},
		{op.AllReduce, 32*kib*32 + 32, each(32), false, nil, "ring"},
		{op.AllReduce, 4 * mib, each(1024), false, nil, "halving"},
		{op.AllReduce, 512 * kib, shared(8), false, nil, "hier"},
		{op.AllReduce, 512*kib + 1, shared(8), false, nil, "hier-ring"},
		{op.AllReduce, mib - 1, shared(1024), false, nil, "hier"},
		{op.AllReduce, mib, shared(1024), false, nil, "hier-ring"},
		{op.AllReduce, 8, Flat(8), false, nil, "hier"},
		{op.AllReduce, 8, each(8), true, nil, "chain"},
		{op.AllReduce, 8, each(8), false, ring, "ring"},
		{op.AllReduce, 8, each(8), true, ring, "chain"},
		{op.Broadcast, 512*kib - 1, each(8), false, ring, "tree"},
		{op.Broadcast, 512 * kib, each(8), true, nil, "scatter-ring"},
		{op.Broadcast, 512 * kib, each(7), false, nil, "tree"},
		{op.Broadcast, 512 * kib, each(256), false, nil, "tree"},
		{op.Reduce, 512*kib - 1, each(8), false, nil, "tree"},
		{op.Reduce, 512 * kib, each(8), false, nil, "scatter-ring"},
		{op.Reduce, 512 * kib, each(8), true, nil, "chain"},
		{op.ReduceScatter, 64*kib - 1, each(8), false, nil, "dissemination"},
		{op.ReduceScatter, 64 * kib, each(8), false, nil, "ring"},
		{op.ReduceScatter, 64 * kib, each(8), true, nil, "chain"},
		{op.AllGather, 64*kib - 1, each(8), false, nil, "dissemination"},
		{op.AllGather, 64 * kib, each(8), false, nil, "ring"},
		{op.AllGather, 64 * kib, each(17), false, nil, "dissemination"},
		{op.Gather, 64*kib*8 - 1, each(8), false, nil, "tree"},
		{op.Gather, 64 * kib * 8, each(8), false, nil, "direct"},
		{op.Scatter, 64*kib*8 - 1, each(8), false, nil, "tree"},
		{op.Scatter, 64 * kib * 8, each(8), false, nil, "direct"},
		{op.AllToAll, mib, shared(8), false, nil, "pairwise"},
		{op.Barrier, 0, each(8), false, nil, "dissemination"},
		{op.Barrier, 0, shared(8), true, nil, "hier"},
		{op.Barrier, 0, Flat(1), false, nil, "dissemination"},
		{op.AllToAll + 1, 0, each(8), false, nil, ""},
	} {
		require.Equal(t, tc.want, Choose(tc.k, tc.bytes, tc.t, tc.rankOrder, tc.tab), "%s of %d bytes, %d ranks on %d hosts", tc.k, tc.bytes, tc.t.Size(), tc.t.Nodes())
	}
}

// TestDefaultsServeAll: each name exists, and each kind ends with an entry that
// always fits.
func TestDefaultsServeAll(t *testing.T) {
	last := map[op.Kind]Entry{}
	for _, e := range Defaults() {
		require.Contains(t, Names(e.Kind), e.Name, "%s", e.Kind)
		last[e.Kind] = e
	}
	for _, k := range collectives {
		require.Equal(t, Entry{Kind: k, Name: last[k].Name}, last[k])
		require.NotEmpty(t, last[k].Name, "%s", k)
	}
}

func TestChooseAllocatesNothing(t *testing.T) {
	topo := Blocks(8, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { Choose(op.AllToAll, 8, topo, false, defaults) }))
}

func BenchmarkChoose(b *testing.B) {
	topo := Blocks(8, 1)
	for b.Loop() {
		Choose(op.AllReduce, 8, topo, false, nil)
	}
}
