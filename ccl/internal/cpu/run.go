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
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/rounds"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/op"
)

// Run makes one call. Whatever goes wrong fails the Comm.
func (c *Comm) Run(ctx context.Context, k *call.Call) *call.Fault {
	if f := c.Proposal.Load(); f != nil {
		f = c.Settle(f)
		if call.IsPairwise(k.Kind) {
			return f
		}
		return c.Side(f, c.Calls+1, c.Mixed(k))
	}
	if c.disturb != nil {
		if f := c.disturb(c, k); f != nil {
			return c.Stop(f)
		}
	}
	k.Offsets = nil
	if k.DC != nil && k.Kind != call.AllToAllV {
		c.work.Offsets = call.OffsetsOf(c.work.Offsets, k.DC, k.Elem)
		k.Offsets = c.work.Offsets
	}
	c.Began = c.Site.Clock()
	c.Lockstep, c.Running = false, k
	if k.Kind != call.Send && k.Kind != call.Recv && k.Kind != call.SendRecv {
		c.Enter(k)
	}
	inject.At("cpu.call")
	f := c.dispatch(ctx, k)
	if c.Untidy || f != nil {
		c.Tidy(f)
	}
	if f == nil && c.Opt.Strict {
		f = c.confirm(ctx, k)
	}
	if c.Running == nil {
		c.EndSleep()
	} else if c.Bell.Set {
		c.Unpark()
	}
	c.Running = nil
	c.Wake()
	if f != nil && !call.IsPairwise(k.Kind) { // what the others say may have come just before this call
		f = c.Side(f, k.Place, k.Hash)
	}
	return f
}

func (c *Comm) dispatch(ctx context.Context, k *call.Call) *call.Fault {
	switch {
	case k.Kind == call.Send || k.Kind == call.Recv || k.Kind == call.SendRecv:
		return c.links.PointToPoint(ctx, k)
	case c.Size() == 1:
		c.alone(k)
		return nil
	case c.isLocal(k.Kind):
		c.Lockstep = true
		return c.RunLocal(ctx, k)
	case k.Kind == call.AllToAllV:
		return c.links.RemoteAllToAllV(ctx, k)
	}
	return c.links.RunRemote(ctx, k)
}

// isLocal reports whether a collective of that kind goes in rounds among the ranks of this host.
func (c *Comm) isLocal(k call.Kind) bool {
	return c.N == c.Size() && (k != call.AllToAllV || c.SlotsV())
}

// alone is a collective of one rank: a copy.
func (c *Comm) alone(k *call.Call) {
	if k.Kind != call.Barrier {
		c.TakeOwn(k.Dst, k.Src, len(k.Dst))
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
		b := call.Call{Head: op.Head{Record: k.Record}, Place: k.Place}
		b.Kind = call.Barrier
		if c.N == c.Size() {
			return c.LocalBarrier(ctx, &b)
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
	case k.Kind == call.AllToAllV && !c.isLocal(k.Kind):
		return "pairwise over " + c.Transport()
	case c.N < c.Size():
		return c.links.Algorithm(k) + " over " + c.Transport()
	}
	blocks := 1
	switch k.Kind {
	case call.ReduceScatter, call.ReduceScatterV, call.Scatter, call.ScatterV, call.AllToAll:
		blocks = max(c.N-1, 1)
	}
	n := int(k.Count) * k.Elem
	if k.Kind == call.AllReduce && n <= c.Local.Form.Most || k.Kind == call.Barrier && c.Local.Form.Group > 0 {
		return c.Local.Form.String() + " over " + c.Transport()
	}
	length, inSlot := c.Layout(n, blocks)
	switch k.Kind {
	case call.Broadcast, call.Scatter, call.ScatterV:
		length, inSlot = c.LayoutSent(n, blocks)
	case call.Reduce:
		length, inSlot = c.LayoutReduced(n)
	}
	if inSlot != rounds.NoSlot && length >= n || k.Kind == call.AllReduce && n <= c.Local.Whole {
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
	var group []int
	for r := range n {
		if all[2*r] == int64(color) {
			group = append(group, r)
		}
	}
	slices.SortStableFunc(group, func(a, b int) int {
		switch {
		case all[2*a+1] < all[2*b+1]:
			return -1
		case all[2*a+1] > all[2*b+1]:
			return 1
		}
		return 0
	})
	// The first member of each host makes the memory for the host's members.
	world, nodeOf, me, lead := make([]int, len(group)), make([]int, len(group)), -1, -1
	for i, r := range group {
		world[i], nodeOf[i] = c.Members.World(r), c.Topo.Node(r)
		if r == c.Rank() {
			me = i
		}
		if lead < 0 && nodeOf[i] == c.Topo.Node(c.Rank()) {
			lead = r
		}
	}
	locals := 0
	for _, h := range nodeOf {
		if h == c.Topo.Node(c.Rank()) {
			locals++
		}
	}
	var off int64
	var err error
	if color >= 0 && lead == c.Rank() {
		var o uint64
		if o, err = c.Site.Host.Alloc(region.Bytes(locals)); err != nil {
			o = 1 // no region is there
		} else { // all have returned from the last Split
			c.Local.Joined(c.Me).Store(0)
			c.Local.SplitSize(c.Me).Store(uint64(locals))
			c.Local.Split(c.Me).Store(o)
		}
		off = int64(o)
	}
	offs := make([]int64, n)
	if f := gather(bytesOf64([]int64{off}), bytesOf64(offs)); f != nil {
		return nil, f
	}
	c.splits++
	id := plane.ChildID(c.ID(), c.splits, color) | tcp.Announced
	var child *Comm
	if color >= 0 && err == nil && offs[lead] != 1 {
		nodes := map[int]bool{}
		for _, h := range nodeOf {
			nodes[h] = true
		}
		child, err = makeComm(c.Site, id, plane.MembersOf(world), plane.Topology(plane.Dense(nodeOf), len(nodes)), me, uint64(offs[lead]), opt)
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
			c.Site.Post(c.neverSplit(id, f, group, me))
		}
		if child != nil {
			child.Abandon()
		}
		return nil, f
	}
	for _, r := range group {
		if all[r] == 0 {
			continue
		}
		if child != nil {
			child.Abandon()
		}
		if off > 1 {
			c.Local.Split(c.Me).Store(0)
			c.Site.Host.Free(uint64(off), region.Bytes(locals))
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
	c.Local.Joined(c.Topo.Local(lead)).Add(1)
	c.Site.Hold()
	child.disturb = c.disturb
	child.Enlist()
	return child, nil
}

// neverSplit says to those that have the new Comm by now that rank me of it, this one, never will, since c has failed with
// f. It names the rank at fault as c does, if that is one of group, the members. Else it is this rank that leaves them, and
// the cause says which rank of the world made it.
func (c *Comm) neverSplit(id uint64, f *call.Fault, group []int, me int) event.Event {
	culprit := c.Blamed(f)
	code, peer, cause := f.Code, slices.Index(group, culprit), f.Err
	if peer < 0 || code == call.Mismatch { // of the calls of another Comm
		code, peer = call.Aborted, me
		cause = fmt.Errorf("Split failed: %s", f.Said())
		if culprit >= 0 {
			cause = fmt.Errorf("Split failed: world rank %d: %s", c.Members.World(culprit), f.Said())
		}
	}
	return event.New(id, code, peer, me, c.Site.Node, cause)
}
