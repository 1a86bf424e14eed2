package cpu

import (
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/fence"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/algo"
)

// Comm is one rank's end of a communicator. Run is for one goroutine at a time; Fail and Failure are for any.
type Comm struct {
	Team
	links  Links
	shrink shrinker

	work    workspace // what calls need beside the caller's memory
	fuse    []byte    // operands and results of a group's small calls
	one     Call      // made of those
	apart   string    // see Apart
	splits  uint64
	disturb func(*Comm, *Call) *Fault // see Disturbed
}

// newComm makes a Comm that begins at once: see makeComm.
func newComm(at *site, id uint64, world members, topo algo.Topology, rank int, off uint64, opt Options) (*Comm, error) {
	c, err := makeComm(at, id, world, topo, rank, off, opt)
	if err == nil {
		c.enlist()
	}
	return c, err
}

// makeComm is the common end of Join, Split and Shrink, and all of them that can fail: world is the ranks of the world in
// the order of the new Comm, off the region of this host's members. The Comm begins once all its ranks have one, or is
// abandoned.
func makeComm(at *site, id uint64, world members, topo algo.Topology, rank int, off uint64, opt Options) (*Comm, error) {
	node := topo.Node(rank)
	n := topo.Locals(node)
	mem, err := at.host.View(off, regionBytes(n))
	if err != nil {
		return nil, err
	}
	c := &Comm{}
	c.Member.init(at, id, world, topo, rank, newRegion(off, mem, n), opt)
	c.Team.init(&c.work)
	c.links.init(&c.Reach, &c.work)
	c.shrink.Links = &c.links
	fence.Prepare()
	if at.tcp != nil {
		at.tcp.Expect(id, uint32(rank))
	}
	return c, nil
}

// abandon drops a Comm that has not begun.
func (c *Comm) abandon() {
	c.cancel()
	if c.id != worldID && c.site.tcp != nil { // the world may be made again, in another try at sharing memory
		c.site.tcp.Forget(c.id, uint32(c.rank))
	}
	for _, off := range c.views {
		c.host.Drop(off)
	}
}

// Apart is why ranks that seemed to be on this rank's host share no memory with it, where this rank is to tell.
func (c *Comm) Apart() string { return c.apart }

// Close leaves the Comm. The last rank of the host to leave frees its memory.
func (c *Comm) Close() {
	if !c.closed.CompareAndSwap(false, true) {
		return
	}
	inject.At("cpu.close")
	c.linger()
	c.links.sayBye()
	c.cancel()
	c.site.remove(&c.Member)
	if c.cause.Load() == nil { // else the others are to learn why, not that this one left
		c.local.state(c.me).Store(stateClosed)
	} else {
		c.local.state(c.me).Store(stateLeft)
	}
	c.ringAll(c.sleeping())
	c.shrink.leave(c.shrink.attempts, (*tcp.Node).Forget)
	c.shrink.leave(c.shrink.attempts+1, (*tcp.Node).Forget)
	// From here on nobody in this process writes into the region: the last rank of the host that leaves frees it, and
	// its memory may be another's at once.
	c.life.Lock()
	c.gone = true
	c.life.Unlock()
	last := int(c.local.left().Add(1)) == c.n
	var made []shm.Place
	if last {
		made = memoryOf(c.host, c.local)
	}
	c.links.close()
	for _, at := range c.views {
		c.site.host.Drop(at)
	}
	for at := range c.maps {
		c.site.host.Drop(at)
	}
	for _, at := range made {
		c.site.host.Free(at.Off, int(at.Size))
	}
	c.site.leave()
}

// memoryOf lists what the ranks of a host have made for a Comm: its region, staging memory, and pipes with the tables that
// name them.
func memoryOf(h *shm.Host, g *region) []shm.Place {
	made := []shm.Place{shm.PlaceAt(g.off, regionBytes(g.n))}
	for r := range g.n {
		if off := g.stage(r).Load(); off != 0 {
			made = append(made, shm.PlaceAt(off, tuning.StageBytes(g.n)))
		}
		if off := g.row(r).Load(); off != 0 {
			made = append(made, pipesOf(h, g.n, off)...)
		}
		made = append(made, orphaned(h, g, r)...)
	}
	return made
}

// orphaned lists what is left of a Comm that rank r of this host has made memory for, when all ranks of the host have closed
// the one with region g, and Split failed on some of them. Those that have the new Comm count themselves out as they close it;
// here the others are counted out.
func orphaned(h *shm.Host, g *region, r int) []shm.Place {
	off, n, joined := g.split(r).Load(), int(g.splitSize(r).Load()), int(g.joined(r).Load())
	switch {
	case off == 0 || joined >= n:
		return nil
	case joined == 0:
		return []shm.Place{shm.PlaceAt(off, regionBytes(n))}
	}
	mem, err := h.View(off, regionBytes(n))
	if err != nil { // it stays until the job ends
		return nil
	}
	defer h.Drop(shm.PlaceAt(off, regionBytes(n)))
	child := newRegion(off, mem, n)
	if int(child.left().Add(uint64(n-joined))) < n {
		return nil
	}
	return memoryOf(h, child)
}
