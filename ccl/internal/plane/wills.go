package plane

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// The ranks of a failed Comm count themselves out one after the other, each as its monitor looks. The last one may wait for a quarter
// of a second and longer while all others are out, and look at the region no more. Should its process end then, no rank of the Comm is
// left to count it. So a process keeps wills in the memory of the host, behind the pulses. A will names a region in which a rank of the
// process waits. When the process has ended, or has left the job, any other process of the host carries out the will: it counts the
// rank, and frees the region if that was the last.
//
// A process that counts a rank that has a will, its own or another's, takes the will first, by an exchange. Until the rank is counted its
// region stays, so it is there for the process that has taken the will. A rank says WillOut first, and then makes its will: what is
// counted by way of Region.Out alone has none. Where a process has more ranks that wait than wills, the others say WaitsOut, and
// are counted by ranks that wait as well.

// willsEach is how many wills a process has.
const willsEach = 32

// will is one of them, 0 for none: the number of the region's first page | the ranks it is of | which of these waits.
type will uint64

const willBits = 18 // of a number of ranks; the other 28 are those of a page's number

func willOf(g *region.Region, me int) will {
	return will(g.Off/uint64(shm.Page)<<(2*willBits) | uint64(g.N)<<willBits | uint64(me))
}

// region is what w names: how many ranks it is of, and which of them waits.
func (w will) region() (off uint64, n, me int) {
	const most = 1<<willBits - 1
	return uint64(w>>(2*willBits)) * uint64(shm.Page), int(w >> willBits & most), int(w & most)
}

// carryOut counts out the rank of the will at place, whose process has ended, and frees what made lists if it was the last of the host,
// unless another process is the one to do that.
func carryOut(place *atomic.Uint64, h *shm.Host, made lister) {
	w := will(place.Load())
	if w == 0 {
		return
	}
	off, n, me := w.region()
	mem, err := h.View(off, region.Bytes(n)) // which is not looked at before the will is taken
	if err != nil {
		return // there is no room to map it now
	}
	if !place.CompareAndSwap(uint64(w), 0) {
		h.Drop(shm.PlaceAt(off, region.Bytes(n)))
		return
	}
	g := region.New(off, mem, n)
	g.Out(me).Store(region.IsOut)
	var free []shm.Place
	if g.Left().Add(1) == uint64(n) {
		free = made(h, g)
	}
	h.Drop(shm.PlaceAt(off, region.Bytes(n)))
	for _, at := range free {
		h.Free(at.Off, int(at.Size))
	}
}

// makeWill makes the will of l, which waits, if there is room for one.
func (l *Leaver) makeWill() {
	l.site.leavers.mu.Lock() // nobody else of this process makes one
	defer l.site.leavers.mu.Unlock()
	own := l.site.Here.ownWills()
	for i := range own {
		if own[i].Load() != 0 {
			continue
		}
		if l.local.Out(l.me).CompareAndSwap(region.WaitsOut, region.WillOut) {
			l.will = &own[i]
			l.will.Store(uint64(willOf(l.local, l.me)))
		}
		return
	}
}

// takeWill reports whether this process is the one to count l out: no other has taken its will.
func (l *Leaver) takeWill() bool {
	return l.will == nil || l.will.CompareAndSwap(uint64(willOf(l.local, l.me)), 0)
}

// ownWills is where the wills of this process are, nil where no other would read them.
func (s *host) ownWills() []atomic.Uint64 {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	if s.processes.wills == nil {
		return nil
	}
	return s.processes.willsOf(s.Job.World.Topo.Local(s.Mine))
}

// willsOf are those of the process whose lowest rank is the l-th of the host. Job.mu is held.
func (p *processes) willsOf(l int) []atomic.Uint64 { return p.wills[l*willsEach:][:willsEach] }

// carryOutWills carries out the wills of processes of this host that have ended.
func carryOutWills(s *Site) {
	s.leavers.mu.Lock()
	made := s.leavers.made
	s.leavers.mu.Unlock()
	if made == nil { // no Comm has been closed yet
		return
	}
	s.Job.mu.Lock()
	h, p := s.Here.Host, &s.Here.processes
	var ended [][]atomic.Uint64
	for i := range p.others {
		if l := p.others[i].local; p.wills != nil && p.hasEnded(l) {
			ended = append(ended, p.willsOf(l))
		}
	}
	s.Job.mu.Unlock()
	for _, wills := range ended {
		for i := range wills {
			carryOut(&wills[i], h, made)
		}
	}
}

// hasEnded reports whether the process whose lowest rank is the l-th of the host makes no step any more: it has ended, or has left the
// job. Job.mu is held.
func (p *processes) hasEnded(l int) bool {
	q := &p.pulses[l]
	return q.left.Load() != 0 || q.death.Load()&proc.OwnerDied != 0
}
