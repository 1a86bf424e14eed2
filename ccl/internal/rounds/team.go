package rounds

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Team is one rank of a host among those of its Comm: the collectives in rounds. Its parts lie in
// it, and each knows those before it, and keeps what it looks at in every call: so a call seldom
// goes from pointer to pointer.
//
//	slots    rounds: to open one, to post it, to await those of others
//	staging  where the data of a round lie
//	offers   whether ranks may read each other's memory, and where it lies
//	sums     the reductions
//	stream   from one rank to another, where there are two
//	inPlace  AllReduce where all can touch the memory of all
type Team struct {
	seat
	slots   slots
	staging staging
	offers  offering
	sums    sums
	stream  stream
	inPlace inPlace

	staged []bool // of AllToAllV, by rank
	work   *call.Workspace
}

// Init readies the calls of a rank, which gets at the memory of its host by r.
func (c *Team) Init(m *plane.Member, r *reach.Reach, work *call.Workspace) {
	c.bind(seat{m.Share.Me, m.Share.N, m.Share.Local, m, r})
	c.work, c.slots.own = work, c.local.Flags(c.me)
	c.slots.begin(m.Order.Start)
}

// seat is what all parts look at.
type seat struct {
	me, n int // this rank's place among those of its host, and how many there are
	local *region.Region
	rank  *plane.Member
	mem   *reach.Reach
}

// bind has the parts of c know each other.
func (c *Team) bind(at seat) {
	c.seat = at
	c.slots = slots{seat: at}
	c.staging = staging{seat: at, slots: &c.slots, chunk: tuning.StageChunk(at.n)}
	c.offers = offering{seat: at, slots: &c.slots, staging: &c.staging}
	c.sums = sums{seat: at, staging: &c.staging, offers: &c.offers}
	c.stream = stream{seat: at, slots: &c.slots, staging: &c.staging, offers: &c.offers, sums: &c.sums}
	c.inPlace = inPlace{seat: at, slots: &c.slots, staging: &c.staging, offers: &c.offers, sums: &c.sums}
}

// Barrier is a round without data: after it, all have done what they did before it.
func (c *Team) Barrier(ctx context.Context, k *call.Call) *call.Fault { return c.slots.barrier(ctx, k) }

// Inline reports whether all that k moves lies in one round beside the flags.
func (c *Team) Inline(k *call.Call) bool {
	blocks := 1
	switch k.Kind {
	case call.ReduceScatter, call.ReduceScatterV, call.Scatter, call.ScatterV, call.AllToAll:
		blocks = max(c.n-1, 1)
	}
	n := int(k.Count) * k.Elem
	length, inSlot := c.staging.layout(n, blocks)
	switch k.Kind {
	case call.Broadcast, call.Scatter, call.ScatterV:
		length, inSlot = c.staging.layoutSent(n, blocks)
	case call.Reduce:
		length, inSlot = c.staging.layoutReduced(n)
	}
	return inSlot != noSlot && length >= n || k.Kind == call.AllReduce && n <= c.local.Whole
}

// RunLocal runs k, all of whose ranks are on this host: a rank of the Comm has the same number there.
func (c *Team) RunLocal(ctx context.Context, k *call.Call) *call.Fault {
	switch k.Kind {
	case call.AllReduce:
		if len(k.Src) <= c.local.Whole {
			return c.allReduceInSlots(ctx, k)
		}
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
	return c.slots.barrier(ctx, k)
}
