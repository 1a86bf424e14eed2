package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/reach"
)

// Small calls of many ranks, in the forms of package tuning. A group is a run of consecutive ranks, and its first rank leads
// it. Members post their operands as in the flat form. The leader awaits them, copies the operands into its own slot, in rank
// order, and posts that: its flag says that all of its group have come. Whoever awaits the flags of all leaders so knows that
// all ranks have posted, and finds all operands. They are moved and not reduced on the way, so all forms give the bits of the
// flat one.
//
// In the grouped form every rank reads from all leaders, in one round. In the tree only leaders do; in a second round each
// posts the result for its group. A member, which has nothing to say there, posts both rounds at once: like any rank that
// posts a round, it has finished reading all rounds two before it.

// leader is the rank that leads rank r's group.
func (c *slots) leader(r int) int { return r - r%c.Local.Form.Group }

// groupSize is how many ranks the group has that lead leads.
func (c *slots) groupSize(lead int) int { return min(c.Local.Form.Group, c.N-lead) }

// follows reports whether this rank only takes the result from its leader.
func (c *slots) follows() bool { return c.Local.Form.Tree && c.Me != c.leader(c.Me) }

// awaitLeaders waits until each leader has said that its group has posted round, beginning behind this rank's group, so that
// the ranks do not all read the same line at once.
func (c *slots) awaitLeaders(ctx context.Context, k *call.Call, round uint32) *call.Fault {
	m, mine := c.Local.Form.Group, c.leader(c.Me)
	for lead := mine + m; lead < c.N; lead += m {
		if f := c.await(ctx, k, lead, round); f != nil {
			return f
		}
	}
	for lead := 0; lead <= mine; lead += m {
		if lead == c.Me {
			continue
		}
		if f := c.await(ctx, k, lead, round); f != nil {
			return f
		}
	}
	c.seen = round
	return nil
}

// passOn posts the tree's second round, which is open. A leader has put there what it passes on; a member awaits that.
func (c *slots) passOn(ctx context.Context, k *call.Call, round uint32) *call.Fault {
	c.post(k, round)
	if !c.follows() {
		return nil
	}
	if f := c.await(ctx, k, c.leader(c.Me), round); f != nil {
		return f
	}
	c.seen = round - 1 // which the leader has seen
	return nil
}

// awaitGroup has a leader wait until the rest of its group has posted round.
func (c *slots) awaitGroup(ctx context.Context, k *call.Call, round uint32) *call.Fault {
	for r := c.Me + 1; r < c.Me+c.groupSize(c.Me); r++ {
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
	}
	return nil
}

// groupedBarrier is LocalBarrier in groups.
func (c *slots) groupedBarrier(ctx context.Context, k *call.Call) *call.Fault {
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	if c.Me == c.leader(c.Me) {
		if f := c.awaitGroup(ctx, k, round); f != nil {
			return f
		}
	}
	c.post(k, round)
	if !c.follows() {
		if f := c.awaitLeaders(ctx, k, round); f != nil {
			return f
		}
	}
	if !c.Local.Form.Tree {
		return nil
	}
	if round, f = c.open(ctx, k, false); f != nil {
		return f
	}
	return c.passOn(ctx, k, round)
}

// groupedAllReduce is allReduce of a vector of at most Form.Most bytes.
func (c *Team) groupedAllReduce(ctx context.Context, k *call.Call) *call.Fault {
	n, leads := len(k.Src), c.Me == c.leader(c.Me)
	room := n // of what this rank posts
	if leads {
		room *= c.groupSize(c.Me)
	}
	round, mine, f := c.begin(ctx, k, room)
	if f != nil {
		return f
	}
	reach.Put(mine, k.Src)
	for i := 1; leads && i < c.groupSize(c.Me); i++ {
		from, f := c.fetch(ctx, k, c.Me+i, round, n)
		if f != nil {
			return f
		}
		reach.Get(unsafe.Slice((*byte)(unsafe.Add(mine, i*n)), n), from)
	}
	c.post(k, round)
	if !c.follows() {
		if f := c.awaitLeaders(ctx, k, round); f != nil {
			return f
		}
		c.foldGroups(k, round, n)
	}
	if !c.Local.Form.Tree {
		return nil
	}
	if c.follows() {
		if round, f = c.open(ctx, k, false); f != nil {
			return f
		}
		if f = c.passOn(ctx, k, round); f == nil {
			reach.Get(k.Dst, c.Local.Payload(c.leader(c.Me), round, n))
		}
		return f
	}
	round, result, f := c.begin(ctx, k, n)
	if f != nil {
		return f
	}
	reach.Put(result, k.Dst)
	return c.passOn(ctx, k, round)
}

// foldGroups reduces the operands of n bytes that the leaders have collected in round, in rank order.
func (c *Team) foldGroups(k *call.Call, round uint32, n int) {
	operand := func(r int) unsafe.Pointer {
		lead := c.leader(r)
		return unsafe.Add(c.Local.Payload(lead, round, n*c.groupSize(lead)), (r-lead)*n)
	}
	dst := call.Ptr(k.Dst)
	if k.SumsAll(c.N) {
		srcs := c.operands(c.N)
		for r := range srcs {
			srcs[r] = operand(r)
		}
		k.SumAll(dst, srcs, n)
		return
	}
	a := operand(0)
	for r := 1; r < c.N; r++ {
		k.Fold(dst, a, operand(r), n/k.Elem)
		a = dst
	}
	if k.Scale != nil {
		k.Scale(dst, n/k.Elem, c.N)
	}
}
