package rounds

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Team is one rank of a host among those of its Comm: the collectives in rounds. It is made of layers, each of which
// embeds the one before it and knows none of those that follow:
//
//	slots     rounds: to open one, to post it, to await those of others
//	staging   where the data of a round lie
//	offering  whether ranks may read each other's memory, and where it lies
//	sums      the reductions
//	stream    from one rank to another, where there are two
type Team struct {
	stream
	places []reach.Source // see directly
	staged []bool         // of AllToAllV, by rank
	work   *call.Workspace
}

// Init readies c, whose Member is.
func (c *Team) Init(work *call.Workspace) {
	c.seen, c.chunk, c.work = c.Start, tuning.StageChunk(c.N), work
	for i := range c.ring.last {
		c.ring.last[i] = c.Start - c.Local.Depth // long ago
	}
}

// RunLocal runs k, all of whose ranks are on this host: a rank of the Comm has the same number there.
func (c *Team) RunLocal(ctx context.Context, k *call.Call) *call.Fault {
	switch k.Kind {
	case call.AllReduce:
		return c.allReduce(ctx, k)
	case call.Reduce:
		return c.reduce(ctx, k)
	case call.ReduceScatter, call.ReduceScatterV:
		return c.reduceScatter(ctx, k)
	case call.Broadcast:
		return c.broadcast(ctx, k)
	case call.AllGather, call.AllGatherV:
		return c.allGather(ctx, k)
	case call.Gather, call.GatherV:
		return c.gather(ctx, k)
	case call.Scatter, call.ScatterV:
		return c.scatter(ctx, k)
	case call.AllToAll:
		return c.allToAll(ctx, k)
	case call.AllToAllV:
		return c.allToAllV(ctx, k)
	}
	return c.LocalBarrier(ctx, k)
}
