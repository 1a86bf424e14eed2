package cpu

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/lived"
)

// How some ranks of a Comm make one of their own, without the others. The lowest of them is the hub.
//
//	1  each tells the hub that it has come, and with which list     the hub: all have come, and this is the number of the Comm
//	2  the first of them on each host makes memory, and offers it   each: I have the Comm, or why not
//	   to the others there                                          the hub: all have it, or which ranks have not, and why
//
// In the first part a rank may leave at any time, and tells the others: see meeting. From then on
// all of them are there, and none leaves before the hub has said how it came out. So all ranks have
// the Comm, or none, unless c fails meanwhile.
//
// The memory of a host goes back when the last of its ranks has counted itself out, as that of a
// Comm that is closed. An offer is taken only by one that waits for it. So the rank that has made
// the memory knows which of the others have taken it; it counts out the rest.

// Subset makes the Comm of those ranks of c, in their order, which all of them call with the same
// list and tag. It takes Options.Timeout at most.
func Subset(ctx context.Context, c *Comm, a *mail.Account, ranks []int, tag int,
	opt plane.Options) (*Comm, *call.Fault) {
	// c may be closed meanwhile: what is used of it from here on belongs to the job.
	if !c.rank.Site.Job.TryHold() {
		return nil, call.NewFault(call.Closed, -1, "the job has ended here")
	}
	defer c.rank.Site.Job.Leave()
	if limit := c.rank.Group.Timeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = lived.Within(ctx, limit)
		defer cancel()
	}
	m := meet(ctx, c, a, ranks, tag)
	defer m.close()
	if f := m.gather(group.ChildID(c.ID(), proc.Number()|1<<41, ranks[0]) | tcp.Announced); f != nil {
		return nil, f
	}
	p := &product{c: c, m: m, part: partOf(c, ranks)}
	f := m.conclude(p.make(opt))
	if f == nil {
		return begun(c, p.child), nil
	}
	if p.child != nil && m.outcome == nil && m.self != m.hub { // others may have it by now
		c.rank.Site.Post(neverSplit(&c.rank, m.id,
			&call.Fault{Code: call.Aborted, Peer: c.Rank(), Err: errors.New("a rank has not made it")}, ranks, p.part.me))
	}
	p.discard(f)
	return nil, f
}

// product is what one rank has of the Comm that is made.
type product struct {
	c     *Comm
	m     *meeting
	part  part
	off   uint64                // where the memory of this rank's host lies; 0: it is not known
	gave  map[int]*mail.Sending // by local rank: the offers of the rank that has made it
	child *Comm
}

// make makes this rank's end of the Comm, in the memory that it makes, or waits for.
func (p *product) make(opt plane.Options) (f *call.Fault) {
	if p.part.lead() == p.c.Rank() {
		f = p.offer()
	} else {
		p.off, f = p.m.offered()
	}
	if f != nil {
		return f
	}
	var err error
	if p.child, err = makeComm(p.c.rank.Site, p.m.id, p.part.world, p.part.topo, p.part.me, p.off, opt); err != nil {
		if p.gave == nil { // it cannot be mapped here, so the rank that made the memory counts this rank out
			p.off = 0
		}
		return call.NewFault(call.Backend, p.m.self, "%w", err)
	}
	return nil
}

// offer makes the memory of this host, and offers it to its other ranks.
func (p *product) offer() *call.Fault {
	off, err := p.c.rank.Site.Here.Host.Alloc(region.Bytes(p.part.locals()))
	if err != nil {
		return call.NewFault(call.Backend, p.m.self, "%w", err)
	}
	p.off, p.gave = off, map[int]*mail.Sending{}
	for l := range p.part.locals() {
		if at := p.part.topo.Rank(p.part.node, l); at != p.part.me {
			p.gave[l] = p.m.send(mail.SubsetOffers, p.part.world.World(at),
				&note{what: noteMemory, id: p.m.id, off: off, locals: uint64(p.part.locals()), local: uint64(l)})
		}
	}
	return nil
}

// discard gives back what was made, since it came to nothing for that reason.
func (p *product) discard(f *call.Fault) {
	job := p.c.rank.Site.Job
	if !job.TryHold() {
		return
	}
	go func() { // a rank that was offered the memory may take a while to answer
		defer job.Leave()
		var out []int
		for l, s := range p.gave {
			s.Cancel()
			<-s.Done()
			w := p.part.world.World(p.part.topo.Rank(p.part.node, l))
			if mail.IsCanceled(s.Fault()) || f.Code == call.Backend && f.Peer == w { // it has not got it, or could not map it
				out = append(out, l)
			}
		}
		if p.child == nil {
			out = append(out, p.part.topo.Local(p.part.me))
		}
		if p.off != 0 {
			giveUp(p.c.rank.Site.Here.Host, p.off, p.part.locals(), out)
		}
		if p.child != nil {
			discard(p.child)
		}
	}()
}

// discard leaves the memory of a Comm that has not begun.
func discard(c *Comm) {
	leaver := plane.Leave(&c.rank, false, memoryOf)
	c.rank.Abandon()
	c.mem.Close()
	leaver.Free()
}

// giveUp gives up the memory of a Comm, of n ranks of this host, for those that have not made it.
func giveUp(h *shm.Host, off uint64, n int, ranks []int) {
	var free []shm.Place
	switch len(ranks) {
	case 0:
	case n: // nobody has it
		free = []shm.Place{shm.PlaceAt(off, region.Bytes(n))}
	default:
		free = countOut(h, off, n, ranks)
	}
	for _, at := range free {
		h.Free(at.Off, int(at.Size))
	}
}
