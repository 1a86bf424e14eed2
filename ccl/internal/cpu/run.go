package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// Run makes one call. Whatever goes wrong fails the Comm.
func (c *Comm) Run(ctx context.Context, k *Call) *Fault {
	if f := c.proposal.Load(); f != nil {
		f = c.settle(f)
		if isPairwise(k.Kind) {
			return f
		}
		return c.side(f, c.calls+1, c.mixed(k))
	}
	if c.disturb != nil {
		if f := c.disturb(c, k); f != nil {
			return c.stop(f)
		}
	}
	k.offsets = nil
	if k.DC != nil && k.Kind != AllToAllV {
		c.work.offsets = offsetsOf(c.work.offsets, k.DC, k.Elem)
		k.offsets = c.work.offsets
	}
	c.began = c.site.clock()
	c.lockstep, c.running = false, k
	if k.Kind != Send && k.Kind != Recv && k.Kind != SendRecv {
		c.enter(k)
	}
	inject.At("cpu.call")
	f := c.dispatch(ctx, k)
	if c.untidy || f != nil {
		c.tidy(f)
	}
	if f == nil && c.opt.Strict {
		f = c.confirm(ctx, k)
	}
	if c.running == nil {
		c.rouse()
	} else if c.bell.set {
		c.rise()
	}
	c.running = nil
	c.wake()
	if f != nil && !isPairwise(k.Kind) { // what the others say may have come just before this call
		f = c.side(f, k.place, k.Hash)
	}
	return f
}

// side is f as it is in collective seq of this rank, with that hash, of which this rank knew nothing yet when the ranks
// that disagree failed the Comm: of the two, the other is the one whose call is not this one.
func (c *Member) side(f *Fault, seq uint64, hash uint32) *Fault {
	if f.other == nil || f.Theirs.Seq != seq || f.Theirs.Hash != hash {
		return f
	}
	g := *f
	g.Peer, g.Theirs, g.other = f.otherPeer, f.other, nil
	c.sided.CompareAndSwap(nil, &g)
	return &g
}

// mixed is the hash of all collectives up to k, which is the next.
func (c *Member) mixed(k *Call) uint32 {
	if c.opt.Unchecked {
		return 1
	}
	return (c.order*0x01000193 ^ k.Hash) | 1
}

// enter gives a collective its place in the order of collectives, which point-to-point
// calls do not count in, and makes its hash that of all of them so far: a rank that
// received nothing in a call that differed finds out in the next.
func (c *Member) enter(k *Call) {
	c.calls++
	r := c.local.call(c.me, c.calls)
	if !Checked {
		k.Hash, k.place = 1, c.calls
		r.Seq, r.Hash = c.calls, 1
		return
	}
	c.order = c.order*0x01000193 ^ k.Hash
	k.Hash = c.order | 1
	if c.opt.Unchecked {
		k.Hash = 1
	}
	k.place = c.calls
	kind := k.Kind
	if k.inside != 0 {
		kind = k.inside
	}
	storeRecord(r, &k.Record, c.calls, k.Seq, kind)
	ordered.Store((*uint64)(unsafe.Pointer(c.local.entered(c.me))), c.calls<<32|uint64(k.Hash))
}

// entered is what this rank has said of the collective it entered last, or of the back-th before it.
func (c *Member) entered(back uint64) Record {
	if back > c.calls {
		return Record{}
	}
	return loadRecord(c.local.call(c.me, c.calls-back))
}

// collective is the number of the collective that rank r of this host is in or has last been in, and the word that says
// so. The word has the lower 32 bits of the number only, the record of the call all of them.
func (c *Member) collective(r int) (place, word uint64) {
	word = c.local.entered(r).Load()
	place = word >> 32
	// A word for itself: the record may be of another call by now, but no half of a number is read.
	if seq := recordWords(c.local.call(r, place))[0].Load(); uint32(seq) == uint32(place) {
		place = seq
	}
	return place, word
}

func (c *Comm) dispatch(ctx context.Context, k *Call) *Fault {
	switch {
	case k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv:
		return c.links.pointToPoint(ctx, k)
	case c.Size() == 1:
		c.alone(k)
		return nil
	case c.isLocal(k.Kind):
		c.lockstep = true
		return c.runLocal(ctx, k)
	case k.Kind == AllToAllV:
		return c.links.remoteAllToAllV(ctx, k)
	}
	return c.links.runRemote(ctx, k)
}

// isLocal reports whether a collective of that kind goes in rounds among the ranks of this host.
func (c *Comm) isLocal(k Kind) bool { return c.n == c.Size() && (k != AllToAllV || c.slotsV()) }

// alone is a collective of one rank: a copy.
func (c *Comm) alone(k *Call) {
	if k.Kind != Barrier {
		takeOwn(k.Dst, k.Src, len(k.Dst))
	}
	if k.Scale != nil && len(k.Dst) > 0 {
		k.Scale(unsafe.Pointer(&k.Dst[0]), len(k.Dst)/k.Elem, 1)
	}
}

// confirm makes a call that some rank could leave before others have come wait for
// all of them: what CheckStrict promises.
func (c *Comm) confirm(ctx context.Context, k *Call) *Fault {
	switch k.Kind {
	case Broadcast, Reduce, Gather, GatherV, Scatter, ScatterV:
		b := Call{Record: k.Record, place: k.place}
		b.Kind = Barrier
		if c.n == c.Size() {
			return c.localBarrier(ctx, &b)
		}
		return c.links.runRemote(ctx, &b)
	}
	return nil
}

// Plan says how a call would go: the algorithm, and over what.
func (c *Comm) Plan(k *Call) string {
	switch {
	case c.Size() == 1:
		return "copy"
	case k.Kind == Send || k.Kind == Recv || k.Kind == SendRecv:
		return "point to point"
	case k.Kind == AllToAllV && !c.isLocal(k.Kind):
		return "pairwise over " + c.Transport()
	case c.n < c.Size():
		return c.links.algorithm(k) + " over " + c.Transport()
	}
	blocks := 1
	switch k.Kind {
	case ReduceScatter, ReduceScatterV, Scatter, ScatterV, AllToAll:
		blocks = max(c.n-1, 1)
	}
	n := int(k.Count) * k.Elem
	if _, inSlot := c.layout(n, blocks); inSlot != noSlot || k.Kind == AllReduce && n <= c.local.whole {
		return "inline over " + c.Transport()
	}
	return "staged over " + c.Transport()
}

// Transport is what the ranks talk over.
func (c *Member) Transport() string {
	inside := "memory"
	if c.site.host.Shared() {
		inside = "shared memory"
	}
	nodes := c.topo.Nodes()
	switch {
	case nodes == 1:
		return inside
	case nodes == c.Size():
		return "TCP (" + c.site.iface + ")"
	}
	return inside + " and TCP (" + c.site.iface + ")"
}

// Exchange gathers a few bytes of each rank, within the call k, a Split or a Window, under whose name others see it.
func (c *Comm) Exchange(ctx context.Context, k *Call, mine, all []byte) *Fault {
	g := Call{Record: k.Record, Dst: all, Src: mine, Elem: 1}
	g.Kind, g.inside, g.Count = AllGather, k.Kind, uint64(len(mine))
	g.Seal()
	return c.Run(ctx, &g)
}

// Split makes the Comms of the ranks that give the same color, in the order of
// their keys. A negative color takes part and gets none.
func (c *Comm) Split(ctx context.Context, k *Call, color, key int, opt Options) (*Comm, *Fault) {
	gather := func(mine, all []byte) *Fault { return c.Exchange(ctx, k, mine, all) }
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
		world[i], nodeOf[i] = c.members.world(r), c.topo.Node(r)
		if r == c.rank {
			me = i
		}
		if lead < 0 && nodeOf[i] == c.topo.Node(c.rank) {
			lead = r
		}
	}
	locals := 0
	for _, h := range nodeOf {
		if h == c.topo.Node(c.rank) {
			locals++
		}
	}
	var off int64
	var err error
	if color >= 0 && lead == c.rank {
		var o uint64
		if o, err = c.site.host.Alloc(regionBytes(locals)); err != nil {
			o = 1 // no region is there
		} else { // all have returned from the last Split
			c.local.joined(c.me).Store(0)
			c.local.splitSize(c.me).Store(uint64(locals))
			c.local.split(c.me).Store(o)
		}
		off = int64(o)
	}
	offs := make([]int64, n)
	if f := gather(bytesOf64([]int64{off}), bytesOf64(offs)); f != nil {
		return nil, f
	}
	c.splits++
	id := childID(c.id, c.splits, color) | tcp.Announced
	var child *Comm
	if color >= 0 && err == nil && offs[lead] != 1 {
		nodes := map[int]bool{}
		for _, h := range nodeOf {
			nodes[h] = true
		}
		child, err = makeComm(c.site, id, membersOf(world), topology(dense(nodeOf), len(nodes)), me, uint64(offs[lead]), opt)
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
			c.site.post(c.neverSplit(id, f, group, me))
		}
		if child != nil {
			child.abandon()
		}
		return nil, f
	}
	for _, r := range group {
		if all[r] == 0 {
			continue
		}
		if child != nil {
			child.abandon()
		}
		if off > 1 {
			c.local.split(c.me).Store(0)
			c.site.host.Free(uint64(off), regionBytes(locals))
		}
		if r != c.rank || err == nil {
			err = fmt.Errorf("rank %d has no shared memory left for the new Comm", r)
			if all[r] < -1 {
				err = fmt.Errorf("%w: %w", err, syscall.Errno(-1-all[r]))
			}
		}
		return nil, &Fault{Code: Backend, Peer: r, Err: err}
	}
	if child == nil {
		return nil, nil
	}
	c.local.joined(c.topo.Local(lead)).Add(1)
	c.site.hold()
	child.disturb = c.disturb
	child.enlist()
	return child, nil
}

// neverSplit says to those that have the new Comm by now that rank me of it, this one, never will, since c has failed with
// f. It names the rank at fault as c does, if that is one of group, the members. Else it is this rank that leaves them, and
// the cause says which rank of the world made it.
func (c *Comm) neverSplit(id uint64, f *Fault, group []int, me int) event {
	culprit := c.blamed(f)
	code, peer, cause := f.Code, slices.Index(group, culprit), f.Err
	if peer < 0 || code == Mismatch { // of the calls of another Comm
		code, peer = Aborted, me
		cause = fmt.Errorf("Split failed: %s", f.said())
		if culprit >= 0 {
			cause = fmt.Errorf("Split failed: world rank %d: %s", c.members.world(culprit), f.said())
		}
	}
	return newEvent(id, code, peer, me, c.site.node, cause)
}

// dense numbers hosts from 0 in the order in which they appear.
func dense(nodeOf []int) []int {
	number := map[int]int{}
	for i, h := range nodeOf {
		if _, ok := number[h]; !ok {
			number[h] = len(number)
		}
		nodeOf[i] = number[h]
	}
	return nodeOf
}

// childID names a Comm within the job: its parent, the split, the color.
func childID(parent, split uint64, color int) uint64 {
	h := parent
	for _, v := range []uint64{split, uint64(color)} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return (h | 1<<63) &^ tcp.Announced // never the world's
}
