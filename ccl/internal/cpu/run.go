package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/op"
)

// Run makes one call. Whatever goes wrong fails the Comm.
func (c *Comm) Run(ctx context.Context, k *call.Call) *call.Fault {
	if f := c.rank.Fate.Proposal(); f != nil {
		f = c.rank.Settle(f)
		if call.IsPairwise(k.Kind) {
			return f
		}
		return c.rank.Fate.Side(f, c.rank.Order.Calls+1, c.rank.Order.Mixed(k))
	}
	if c.disturb != nil {
		if f := c.disturb(c, k); f != nil {
			return c.rank.Stop(f)
		}
	}
	k.Offsets = nil
	if k.DC != nil && k.Kind != call.AllToAllV {
		c.work.Offsets = call.OffsetsOf(c.work.Offsets, k.DC, k.Elem)
		k.Offsets = c.work.Offsets
	}
	c.rank.Current.Begin(k, c.rank.Clock.Clock())
	if k.Kind != call.Send && k.Kind != call.Recv && k.Kind != call.SendRecv {
		c.rank.Order.Enter(k)
	}
	inject.At("cpu.call")
	f := c.dispatch(ctx, k)
	if c.mem.Untidy || f != nil {
		c.mem.Tidy(f)
	}
	if f == nil && c.rank.Group.Strict() {
		f = c.confirm(ctx, k)
	}
	c.rank.EndCall()
	if f != nil && !call.IsPairwise(k.Kind) { // what the others say may have come just before this call
		f = c.rank.Fate.Side(f, k.Place, k.Hash)
	}
	return f
}

func (c *Comm) dispatch(ctx context.Context, k *call.Call) *call.Fault {
	switch {
	case k.Kind == call.Send || k.Kind == call.Recv || k.Kind == call.SendRecv:
		return c.links.Pairs.PointToPoint(ctx, k)
	case c.Size() == 1:
		alone(&c.mem, k)
		return nil
	case c.local.Runs(k.Kind):
		c.rank.Current.InRounds(true)
		return c.local.RunLocal(ctx, k)
	case k.Kind == call.AllToAllV:
		return c.links.RemoteAllToAllV(ctx, k)
	}
	return c.links.RunRemote(ctx, k)
}

// alone is a collective of one rank: a copy.
func alone(mem *reach.Reach, k *call.Call) {
	if k.Kind != call.Barrier {
		mem.TakeOwn(k.Dst, k.Src, len(k.Dst))
	}
	switch {
	case len(k.Dst) == 0:
	case k.Weighs:
		k.Last(unsafe.Pointer(&k.Dst[0]), len(k.Dst), 1)
	case k.Scale != nil:
		k.Scale(unsafe.Pointer(&k.Dst[0]), len(k.Dst)/k.Elem, 1)
	}
}

// confirm makes a call that some rank could leave before others have come wait for
// all of them: what CheckStrict promises.
func (c *Comm) confirm(ctx context.Context, k *call.Call) *call.Fault {
	switch k.Kind {
	case call.Broadcast, call.Reduce, call.Gather, call.GatherV, call.Scatter, call.ScatterV:
		b := call.Call{Head: op.Head{Record: k.Record}}
		b.Kind = call.Barrier
		if c.rank.Share.N == c.Size() {
			return c.local.Barrier(ctx, &b)
		}
		return c.links.RunRemote(ctx, &b)
	}
	return nil
}

// Plan says how a call would go: the algorithm, and over what.
func (c *Comm) Plan(k *call.Call) string {
	switch {
	case c.Size() == 1:
		return "copy"
	case k.Kind == call.Send || k.Kind == call.Recv || k.Kind == call.SendRecv:
		return "point to point"
	case k.Kind == call.AllToAllV && !c.local.Runs(k.Kind):
		return "pairwise over " + c.Transport()
	case c.rank.Share.N < c.Size():
		return c.links.Algorithm(k) + " over " + c.Transport()
	}
	if c.local.Inline(k) {
		return "inline over " + c.Transport()
	}
	return "staged over " + c.Transport()
}

// Exchange gathers a few bytes of each rank, within the call k, a Split or a Window, under whose name others see it.
func (c *Comm) Exchange(ctx context.Context, k *call.Call, mine, all []byte) *call.Fault {
	g := call.Call{Head: op.Head{Record: k.Record}, Dst: all, Src: mine, Elem: 1}
	g.Kind, g.Inside, g.Count = call.AllGather, k.Kind, uint64(len(mine))
	g.Seal()
	return c.Run(ctx, &g)
}

// Split makes the Comms of the ranks that give the same color, in the order of
// their keys. A negative color takes part and gets none.
func (c *Comm) Split(ctx context.Context, k *call.Call, color, key int, opt plane.Options) (*Comm, *call.Fault) {
	gather := func(mine, all []byte) *call.Fault { return c.Exchange(ctx, k, mine, all) }
	inject.At("cpu.split")
	n := c.Size()
	all := make([]int64, 2*n)
	if f := gather(bytesOf64([]int64{int64(color), int64(key)}), bytesOf64(all)); f != nil {
		return nil, f
	}
	var members []int
	for r := range n {
		if all[2*r] == int64(color) {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int {
		switch {
		case all[2*a+1] < all[2*b+1]:
			return -1
		case all[2*a+1] > all[2*b+1]:
			return 1
		}
		return 0
	})
	// The first member of each host makes the memory for the host's members.
	world, nodeOf, me, lead := make([]int, len(members)), make([]int, len(members)), -1, -1
	for i, r := range members {
		world[i], nodeOf[i] = c.rank.Group.World(r), c.rank.Group.Topology().Node(r)
		if r == c.Rank() {
			me = i
		}
		if lead < 0 && nodeOf[i] == c.rank.Group.Topology().Node(c.Rank()) {
			lead = r
		}
	}
	locals := 0
	for _, h := range nodeOf {
		if h == c.rank.Group.Topology().Node(c.Rank()) {
			locals++
		}
	}
	var off int64
	var err error
	if color >= 0 && lead == c.Rank() {
		var o uint64
		if o, err = c.rank.Site.Here.Host.Alloc(region.Bytes(locals)); err != nil {
			o = 1 // no region is there
		} else { // all have returned from the last Split
			c.rank.Share.Local.Joined(c.rank.Share.Me).Store(0)
			c.rank.Share.Local.SplitSize(c.rank.Share.Me).Store(uint64(locals))
			c.rank.Share.Local.Split(c.rank.Share.Me).Store(o)
		}
		off = int64(o)
	}
	offs := make([]int64, n)
	if f := gather(bytesOf64([]int64{off}), bytesOf64(offs)); f != nil {
		return nil, f
	}
	c.splits++
	id := group.ChildID(c.ID(), c.splits, color) | tcp.Announced
	var child *Comm
	if color >= 0 && err == nil && offs[lead] != 1 {
		nodes := map[int]bool{}
		for _, h := range nodeOf {
			nodes[h] = true
		}
		child, err = makeComm(c.rank.Site, id, group.MembersOf(world), group.Topology(group.Dense(nodeOf), len(nodes)), me, uint64(offs[lead]), opt)
	}
	// All members have the Comm, or none.
	made := []int64{0}
	if err != nil {
		made[0] = -1
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			made[0] = -1 - int64(errno)
		}
	}
	all = all[:n]
	if f := gather(bytesOf64(made), bytesOf64(all)); f != nil {
		if me >= 0 { // others may have the new Comm by now, and wait for this rank there
			c.rank.Site.Post(neverSplit(&c.rank, id, f, members, me))
		}
		if child != nil {
			child.rank.Abandon()
		}
		return nil, f
	}
	for _, r := range members {
		if all[r] == 0 {
			continue
		}
		if child != nil {
			child.rank.Abandon()
		}
		if off > 1 {
			c.rank.Share.Local.Split(c.rank.Share.Me).Store(0)
			c.rank.Site.Here.Host.Free(uint64(off), region.Bytes(locals))
		}
		if r != c.Rank() || err == nil {
			err = fmt.Errorf("rank %d has no shared memory left for the new Comm", r)
			if all[r] < -1 {
				err = fmt.Errorf("%w: %w", err, syscall.Errno(-1-all[r]))
			}
		}
		return nil, &call.Fault{Code: call.Backend, Peer: r, Err: err}
	}
	if child == nil {
		return nil, nil
	}
	c.rank.Share.Local.Joined(c.rank.Group.Topology().Local(lead)).Add(1)
	c.rank.Site.Job.Hold()
	child.disturb = c.disturb
	child.rank.Enlist()
	return child, nil
}

// neverSplit says to those that have the new Comm by now that rank me of it, this one, never will, since c has failed with
// f. It names the rank at fault as c does, if that is one of the members. Else it is this rank that leaves them, and
// the cause says which rank of the world made it.
func neverSplit(c *plane.Member, id uint64, f *call.Fault, members []int, me int) event.Event {
	culprit := c.Group.Blamed(f)
	code, peer, cause := f.Code, slices.Index(members, culprit), f.Err
	if peer < 0 || code == call.Mismatch { // of the calls of another Comm
		code, peer = call.Aborted, me
		cause = fmt.Errorf("Split failed: %s", f.Said())
		if culprit >= 0 {
			cause = fmt.Errorf("Split failed: world rank %d: %s", c.Group.World(culprit), f.Said())
		}
	}
	return event.New(id, code, peer, me, c.Site.Here.Node, cause)
}
