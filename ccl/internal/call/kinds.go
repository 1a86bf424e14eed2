package call

import "github.com/goccl/goccl/internal/algo"

// IsPairwise reports whether calls of kind k are between two ranks.
func IsPairwise(k Kind) bool { return k == Send || k == Recv || k == SendRecv }

// KindOf is k as the schedules name it.
func KindOf(k Kind) algo.Kind {
	switch k {
	case AllReduce:
		return algo.AllReduce
	case Reduce:
		return algo.Reduce
	case ReduceScatter, ReduceScatterV:
		return algo.ReduceScatter
	case Broadcast:
		return algo.Broadcast
	case AllGather, AllGatherV:
		return algo.AllGather
	case Gather, GatherV:
		return algo.Gather
	case Scatter, ScatterV:
		return algo.Scatter
	case AllToAll, AllToAllV:
		return algo.AllToAll
	}
	return algo.Barrier
}

// Bytes is the length of k's whole vector, the same on all ranks.
func (k *Call) Bytes(n int) int64 {
	b := int64(k.Count) * int64(k.Elem)
	switch k.Kind {
	case ReduceScatter, AllGather, Gather, Scatter, AllToAll:
		return b * int64(n)
	case AllToAllV: // whose counts only its own rank knows
		return 0
	}
	return b
}
