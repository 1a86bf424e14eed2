package cpu

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/rounds"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/shrink"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// Comm is one rank's end of a communicator: the CPU engine, and the control plane of whatever
// engine moves the data. It is the engine.Engine of host memory. Run is for one goroutine at a
// time; Fail and Failure are for any.
type Comm struct {
	engine.Lacking
	rank   plane.Member
	mem    reach.Reach
	local  rounds.Team
	links  links.Links
	shrink shrink.Shrinker

	goes    [op.Kinds]way  // how calls of each kind go
	work    call.Workspace // what calls need beside the caller's memory
	grouped grouped
	inner   [1]*call.Call // see one
	splits  uint64
	split   bool                                // it is one of Split
	ended   []int                               // see Ended
	disturb func(*Comm, *call.Call) *call.Fault // see Disturbed
}

// newComm makes a Comm that begins at once: see makeComm.
func newComm(at *plane.Site, id uint64, world group.Members, topo algo.Topology, rank int, off uint64,
	opt plane.Options) (*Comm, error) {
	c, err := makeComm(at, id, world, topo, rank, off, opt)
	if err == nil {
		c.rank.Enlist()
	}
	return c, err
}

// makeComm is the common end of Join, Split and Shrink, and all of them that can fail: world is the
// ranks of the world in the order of the new Comm, off the region of this host's members. The Comm
// begins once all its ranks have one, or is abandoned.
func makeComm(at *plane.Site, id uint64, world group.Members, topo algo.Topology, rank int, off uint64,
	opt plane.Options) (*Comm, error) {
	node := topo.Node(rank)
	n := topo.Locals(node)
	mem, err := at.Here.Host.View(off, region.Bytes(n))
	if err != nil {
		return nil, err
	}
	c := &Comm{}
	c.rank.Init(at, id, world, topo, rank, region.New(off, mem, n), opt)
	c.mem.Init(&c.rank)
	c.local.Init(&c.rank, &c.mem, &c.work)
	c.links.Init(&c.rank, &c.mem, &c.work)
	c.shrink.Init(&c.rank, &c.links)
	for k := range c.goes {
		c.goes[k] = wayOf(c, op.Kind(k))
	}
	ordered.Prepare()
	if at.Job.Net.TCP != nil {
		at.Job.Net.TCP.Expect(id, uint32(rank))
	}
	return c, nil
}

// Close leaves the Comm. The last rank of the host to leave frees its memory. Closing twice does nothing.
func (c *Comm) Close() error {
	if !c.rank.Fate.Close() {
		return nil
	}
	inject.At("cpu.close")
	c.rank.Linger()
	c.links.Ends.SayBye()
	c.rank.Fate.Cancel()
	c.rank.Site.Job.Remove(&c.rank)
	if c.rank.Fate.Cause() == nil { // else the others are to learn why, not that this one left
		c.rank.Share.Local.State(c.rank.Share.Me).Store(region.StateClosed)
	} else {
		c.rank.Share.Local.State(c.rank.Share.Me).Store(region.StateLeft)
	}
	c.rank.Ring(c.rank.Share.ClaimSleepers())
	c.shrink.Leave(c.shrink.Attempts, (*tcp.Node).Forget)
	c.shrink.Leave(c.shrink.Attempts+1, (*tcp.Node).Forget)
	// From here on nobody in this process writes into the region: the last rank of the host that leaves frees it, and
	// its memory may be another's at once.
	leaver := plane.Leave(&c.rank, c.split, memoryOf)
	if leaver.Last() && c.rank.Fate.Cause() == nil {
		c.rank.Standing.AnnounceClosed()
	}
	c.links.Ends.Close()
	c.rank.Share.Drop()
	c.mem.Close()
	leaver.Free()
	c.rank.Site.Job.Leave()
	return nil
}

// memoryOf lists what the ranks of a host have made for a Comm: its region, staging memory, rings,
// requests, and pipes with the tables that name them.
func memoryOf(h *shm.Host, g *region.Region) []shm.Place {
	made := []shm.Place{shm.PlaceAt(g.Off, region.Bytes(g.N))}
	for r := range g.N {
		if off := g.Stage(r).Load(); off != 0 {
			made = append(made, shm.PlaceAt(off, tuning.StageBytes(g.N)))
		}
		if off := g.Sent(r).Load(); off != 0 {
			made = append(made, shm.PlaceAt(off, watch.LayoutOf(h).SentRing(g.N)))
		}
		if off := g.Request(r).Load(); off != 0 {
			made = append(made, shm.PlaceAt(off, reach.RequestBytes))
		}
		if off := g.Row(r).Load(); off != 0 {
			made = append(made, links.PipesOf(h, g.N, off)...)
		}
		made = append(made, orphaned(h, g, r)...)
	}
	return made
}

// orphaned lists what is left of a Comm that rank r of this host has made memory for, when all
// ranks of the host have closed the one with region g, and Split failed on some of them. Those that
// have the new Comm count themselves out as they close it; here the others are counted out.
func orphaned(h *shm.Host, g *region.Region, r int) []shm.Place {
	off, n, joined := g.Split(r).Load(), int(g.SplitSize(r).Load()), int(g.Joined(r).Load())
	switch {
	case off == 0 || joined >= n:
		return nil
	case joined == 0:
		return []shm.Place{shm.PlaceAt(off, region.Bytes(n))}
	}
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	return countOut(h, off, n, all)
}

// countOut marks these ranks as out of the memory of a Comm, which n ranks of this host share and
// which lies at off. If they are the last, it returns what is to be freed.
func countOut(h *shm.Host, off uint64, n int, ranks []int) []shm.Place {
	mem, err := h.View(off, region.Bytes(n))
	if err != nil { // it stays until the job ends
		return nil
	}
	defer h.Drop(shm.PlaceAt(off, region.Bytes(n)))
	g, out := region.New(off, mem, n), uint64(0)
	for _, r := range ranks {
		if g.Out(r).CompareAndSwap(0, region.IsOut) { // those that have ended may have been counted out there
			out++
		}
	}
	if out == 0 || g.Left().Add(out) < uint64(n) {
		return nil
	}
	return memoryOf(h, g)
}

// Join makes the Comm of all ranks of a job.
func Join(ctx context.Context, b join.Bootstrap, terms join.Terms, opt plane.Options) (*Comm, *call.Fault) {
	var c *Comm
	f := join.Join(ctx, b, terms, opt.Agreed.PeerTimeout,
		func(at *plane.Site, topo algo.Topology, rank int, off uint64) (_ *plane.Member, err error) {
			if c, err = makeComm(at, group.WorldID, group.Members{Stride: 1}, topo, rank, off, opt); err != nil {
				return nil, err
			}
			return &c.rank, nil
		})
	if f != nil {
		return nil, f
	}
	if d, ok := b.(Disturbed); ok {
		c.disturb = d.BeforeCall
	}
	return c, nil
}
