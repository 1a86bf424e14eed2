package cpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/op"
)

// Run makes calls, as a group where there are several. Whatever goes wrong fails the Comm: an error
// is the *call.Fault. A call of its own is made here, with nothing between it and the parts that do
// the work.
func (c *Comm) Run(ctx context.Context, calls []*op.Call) error {
	if len(calls) != 1 {
		return failure(c.group(ctx, calls))
	}
	k := calls[0]
	way := c.goes[k.Kind]
	f := c.rank.Begin(k, way.over == inRounds)
	if f != nil {
		return failure(c.over(k, f))
	}
	if c.disturb != nil {
		if f = c.disturb(c, k); f != nil {
			return failure(c.rank.Stop(f))
		}
		c.rank.Current.Begin(k, c.rank.Clock.Now(), way.over == inRounds) // what that took is not the call's time
	}
	if k.DC != nil || k.Offsets != nil {
		c.work.SetOffsets(k)
	}
	if way.over != messages {
		c.rank.Order.Enter(k)
	}
	if inject.On {
		inject.At("cpu.call")
	}
	switch way.over {
	case inRounds:
		f = c.local.RunLocal(ctx, k)
	case messages:
		f = c.links.Pairs.PointToPoint(ctx, k)
	default:
		f = elsewhere(ctx, c, k, way.over)
	}
	if c.mem.Untidy || f != nil {
		c.mem.Tidy(f)
	}
	if f == nil && way.confirmed {
		f = c.meet(ctx, k)
	}
	c.rank.EndCall()
	if f == nil {
		return nil
	}
	return failure(c.sided(k, f))
}

// sided is f as it is in k, which has failed: what the others say may have come just before it.
func (c *Comm) sided(k *call.Call, f *call.Fault) *call.Fault {
	if k.Kind.Pairwise() {
		return f
	}
	return c.rank.Fate.Side(f, k.Place, k.Hash)
}

// elsewhere makes a collective that is not in rounds.
func elsewhere(ctx context.Context, c *Comm, k *call.Call, over path) *call.Fault {
	switch over {
	case alone:
		copyAlone(&c.mem, k)
		return nil
	case exchanged:
		return c.links.RemoteAllToAllV(ctx, k)
	}
	return c.links.RunRemote(ctx, k)
}

// way is how the calls of one kind go in a Comm. It follows from what all ranks have agreed on.
type way struct {
	over path
	// no rank leaves before all have come: what CheckStrict promises of calls that some rank could
	// leave before
	confirmed bool
}

// path is what makes a call.
type path uint8

const (
	scheduled path = iota // between hosts, by a schedule of package algo
	exchanged             // an AllToAllV that is not in rounds
	inRounds              // among the ranks of one host
	messages              // from rank to rank
	alone                 // of the only rank: a copy
)

// wayOf is how calls of kind k go in c.
func wayOf(c *Comm, k op.Kind) way {
	w := way{confirmed: k.Rooted() && c.rank.Group.Strict()}
	switch {
	case k.Pairwise():
		w.over = messages
	case c.Size() == 1:
		w.over = alone
	case c.local.Runs(k):
		w.over = inRounds
	case k == op.AllToAllV:
		w.over = exchanged
	}
	return w
}

// failure is f as an error, nil if there is none.
func failure(f *call.Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// over is why k is not made: the Comm fails, or has failed, for which f was proposed.
func (c *Comm) over(k *call.Call, f *call.Fault) *call.Fault {
	if f = c.rank.Settle(f); k.Kind.Pairwise() {
		return f
	}
	return c.rank.Fate.Side(f, c.rank.Order.Calls+1, c.rank.Order.Mixed(k))
}

// one makes a call within another.
func (c *Comm) one(ctx context.Context, k *call.Call) *call.Fault {
	c.inner[0] = k // which allocates nothing
	err := c.Run(ctx, c.inner[:])
	c.inner[0] = nil
	if err != nil {
		return err.(*call.Fault)
	}
	return nil
}

// copyAlone is a collective of one rank.
func copyAlone(mem *reach.Reach, k *call.Call) {
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

// Supports refuses device memory, and to reduce what there is no arithmetic for.
func (c *Comm) Supports(k op.Kind, t op.Type, o op.Op, host bool) error {
	switch {
	case !host:
		return errors.New("the cpu engine takes only host memory, and this is device memory")
	case k.Reduces() && !op.Reduces(t, o):
		return fmt.Errorf("the cpu engine does not reduce %s by %s", t, o)
	}
	return nil
}

// Abort has nothing to do: the failure of the Comm, which it follows, ends the calls under way.
func (c *Comm) Abort() {}

// Plan says how a call would go: the algorithm, and over what.
func (c *Comm) Plan(k *call.Call) string {
	switch c.goes[min(k.Kind, op.Barrier)].over { // also of what is no kind
	case alone:
		return "copy"
	case messages:
		return "point to point"
	case exchanged:
		return "pairwise over " + c.Transport()
	case scheduled:
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
	return c.one(ctx, &g)
}

// RollCall is a Barrier in which rank 0 hears from each of the others itself, within the call k,
// under whose name others see it.
func RollCall(ctx context.Context, c *Comm, k *call.Call) *call.Fault {
	b := call.Call{Head: op.Head{Record: k.Record}, Inside: k.Kind}
	b.Kind = call.Barrier
	b.Seal()
	return c.one(ctx, &b)
}

// Split makes of c, in its call k, the Comms of the ranks that give the same color, in the order of
// their keys. A negative color takes part and gets none.
func Split(ctx context.Context, c *Comm, k *call.Call, color, key int, opt plane.Options) (*Comm, *call.Fault) {
	gather := func(mine, all []int64) *call.Fault { return c.Exchange(ctx, k, bytesOf(mine), bytesOf(all)) }
	inject.At("cpu.split")
	n := c.Size()
	all := make([]int64, 2*n)
	if f := gather([]int64{int64(color), int64(key)}, all); f != nil {
		return nil, f
	}
	var ranks []int
	for r := range n {
		if color >= 0 && all[2*r] == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	if inject.Wrong("cpu.split") {
		slices.Sort(ranks)
	}
	p := partOf(c, ranks)
	off, err := regionFor(c, &p)
	offs := make([]int64, n)
	if f := gather([]int64{int64(off)}, offs); f != nil {
		return nil, f
	}
	c.splits++
	id := group.ChildID(c.ID(), c.splits, color) | tcp.Announced
	var child *Comm
	if p.me >= 0 && err == nil && offs[p.lead()] != noRegion {
		child, err = makeComm(c.rank.Site, id, p.world, p.topo, p.me, uint64(offs[p.lead()]), opt)
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
	if f := gather(made, all); f != nil {
		if p.me >= 0 { // others may have the new Comm by now, and wait for this rank there
			c.rank.Site.Post(neverSplit(&c.rank, id, f, ranks, p.me))
		}
		if child != nil {
			child.rank.Abandon()
		}
		return nil, f
	}
	for _, r := range ranks {
		if all[r] == 0 {
			continue
		}
		if child != nil {
			child.rank.Abandon()
		}
		if off > noRegion {
			c.rank.Share.Local.Split(c.rank.Share.Me).Store(0)
			c.rank.Site.Here.Host.Free(off, region.Bytes(p.locals()))
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
	child.split = true
	c.rank.Share.Local.Joined(c.Topology().Local(p.lead())).Add(1) // first: a rank that says IsIn has been counted here
	child.rank.Share.Local.Out(child.rank.Share.Me).CompareAndSwap(0, region.IsIn)
	return begun(c, child), nil
}

// begun is child, which c has made with the other ranks, in the job.
func begun(c, child *Comm) *Comm {
	c.rank.Site.Job.Hold()
	child.disturb = c.disturb
	child.rank.Enlist()
	return child
}

// noRegion is where a region lies that could not be made.
const noRegion = 1

// regionFor makes the memory of those of p that are on this rank's host, if it is the first of them: 0 if it is not.
func regionFor(c *Comm, p *part) (off uint64, err error) {
	if p.me < 0 || p.lead() != c.Rank() {
		return 0, nil
	}
	if off, err = c.rank.Site.Here.Host.Alloc(region.Bytes(p.locals())); err != nil {
		return noRegion, err
	}
	// All have returned from the last Split.
	c.rank.Share.Local.Joined(c.rank.Share.Me).Store(0)
	c.rank.Share.Local.SplitSize(c.rank.Share.Me).Store(uint64(p.locals()))
	c.rank.Share.Local.Split(c.rank.Share.Me).Store(off)
	return off, nil
}

// splitFailed begins the cause of a Comm that a rank has never had.
const splitFailed = "Split failed: "

// NeverWhole reports whether f, the failure of a Comm that Split has made, is that a rank has not got it, for a reason
// outside it: so no call of all its ranks has ever been completed.
func NeverWhole(f *call.Fault) bool {
	return f.Code == call.Aborted && f.Err != nil && strings.HasPrefix(f.Err.Error(), splitFailed)
}

// neverSplit tells the ranks that have the new Comm by now that rank me of it, this one, never
// will, since c has failed with f. It names the rank at fault as c does, if the new Comm has that
// rank. Else it names this rank, and the cause says which rank of the world is at fault.
func neverSplit(c *plane.Member, id uint64, f *call.Fault, members []int, me int) event.Event {
	culprit := f.Peer
	code, peer, cause := f.Code, slices.Index(members, culprit), f.Err
	if peer < 0 || code == call.Mismatch { // of the calls of another Comm
		code, peer = call.Aborted, me
		cause = fmt.Errorf("%s%s", splitFailed, f.Said())
		if culprit >= 0 {
			cause = fmt.Errorf("%sworld rank %d: %s", splitFailed, c.Group.World(culprit), f.Said())
		}
	}
	return event.New(id, code, peer, me, c.Site.Here.Node, cause)
}
