package call

import "github.com/goccl/goccl/internal/algo"

// IsPairwise reports whether calls of kind k are between two ranks.
func IsPairwise(k Kind) bool { return k.Pairwise() }

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
