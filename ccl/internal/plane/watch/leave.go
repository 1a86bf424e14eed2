package watch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What the ranks of a host share of a Comm goes back to the host when the last of them has closed
// it. Each counts itself in Region.Left, once, and looks at the region no more after that. The one
// that brings the count to their number frees it.
//
// A rank whose process has ended, or has left the job, counts itself no more, so another does that
// for it. Region.Out says of each rank whether it has been counted, and is changed by an exchange,
// so that each is counted once. Which ranks have ended may only be known later. So a rank that
// closes a Comm that has failed says that it writes there no more, and counts itself when all
// others have said so, or have ended. Until then the region is there, and with each beat the
// monitor looks again. Should its process end meanwhile, others count it: see pendingexit.go.
//
// A rank that is believed to be lost is not counted: its process may be stopped, and go on, in a
// call of that Comm. The abort word then tells it that the Comm has failed; in memory that is
// emptied, or another Comm's, it would take any bytes for data. It leaves the Comm as all do, or
// its end is waited for. A process that is killed between two of these steps leaves the memory of
// that Comm to the end of the job.

// Leaving is a rank that is about to leave the memory of a Comm.
type Leaving struct {
	Host  *shm.Host // which the Comm lies in; the site may have another by then, if the Comm is abandoned
	Local *region.Region
	Me    int
	Ranks []int // of the world, by rank of the host
	Split bool  // the Comm is one of Split: no rank is counted that never had it

	HasFailed bool // the Comm has
	Made      Lister
}

// Leaver is a rank that leaves the memory of a Comm.
type Leaver struct {
	Leaving
	site  *Leavers
	fails bool // the Comm has failed, or will: a rank is lost
	place shm.Place
	waits bool           // for others that may end
	exit  *atomic.Uint64 // its entry among the pending exits of this process, while it waits; nil: none
	last  bool
	free  []shm.Place
}

// Lister lists what the ranks of a host have made for the Comm of a region, which is to be freed with it.
type Lister func(*shm.Host, *region.Region) []shm.Place

// Leave counts a rank out, which looks at nothing that the ranks share from here on. If it is the
// last, Free frees what Made lists.
func (s *Leavers) Leave(of Leaving) *Leaver {
	l, g := &Leaver{Leaving: of, site: s}, of.Local
	l.fails = of.HasFailed || s.hasLost(of.Ranks)
	if _, err := l.Host.View(g.Off, region.Bytes(g.N)); err != nil { // it is mapped already, so that cannot be
		return l
	}
	l.place = shm.PlaceAt(g.Off, region.Bytes(g.N))
	s.knows(l.Made)
	if l.fails && l.Host.Shared() {
		g.Out(l.Me).Store(region.WaitsOut)
		l.waits = !l.isReady()
	}
	if l.waits {
		l.listExit()
	} else {
		l.count()
	}
	return l
}

// hasLost reports whether one of those ranks of the world is believed to be lost.
func (s *Leavers) hasLost(ranks []int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return slices.ContainsFunc(ranks, func(w int) bool { return s.host.World.Of(w).Lost })
}

// hasLosses reports whether a rank of the world is believed to be lost.
func (s *Leavers) hasLosses() bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.host.World.Losses() > 0
}

// Last reports whether this rank is the last of its host.
func (l *Leaver) Last() bool { return l.last }

// Free frees the shared memory of the Comm, if this rank is the last of its host. The rank has
// unmapped its views before. Where the rank waits for others, the monitor goes on.
func (l *Leaver) Free() {
	s := l.site
	if l.waits {
		s.add(l)
	} else {
		l.end()
	}
	s.Settle()
}

// isReady reports whether all others have been counted, or wait as this rank does, or have ended.
func (l *Leaver) isReady() bool {
	out := l.Local.Left().Load() // first: a rank that is counted meanwhile is missed, and not taken for two
	ended := l.site.host.endedOf(l.Ranks)
	for r := range l.Ranks {
		switch s := l.Local.Out(r).Load(); {
		case s == region.WaitsOut, s == region.ListedOut, s != region.IsOut && ended[r] && !l.neverIn(s):
			out++
		}
	}
	return out >= uint64(l.Local.N)
}

// neverIn reports whether Region.Out says that a rank never had the Comm.
func (l *Leaver) neverIn(out uint64) bool { return l.Split && out == 0 }

// count counts this rank out, and those that have ended and whose exits are not listed.
func (l *Leaver) count() {
	var ended []bool
	if l.Host.Shared() && (l.fails || l.site.hasLosses()) {
		ended = l.site.host.endedOf(l.Ranks)
	}
	if !l.takeExit() { // from here on nobody counts this rank if this process ends
		return
	}
	n := uint64(1)
	if ended != nil {
		for r := range l.Ranks {
			s := l.Local.Out(r).Load()
			if r != l.Me && ended[r] && !l.neverIn(s) && s != region.ListedOut && s != region.IsOut &&
				l.Local.Out(r).CompareAndSwap(s, region.IsOut) {
				n++
			}
		}
	}
	l.Local.Out(l.Me).Store(region.IsOut)
	if l.last = l.Local.Left().Add(n) == uint64(l.Local.N); l.last {
		l.free = l.Made(l.Host, l.Local)
	}
}

// end unmaps the region, and frees what is to be freed.
func (l *Leaver) end() {
	l.Host.Drop(l.place)
	for _, at := range l.free {
		l.Host.Free(at.Off, int(at.Size))
	}
}

// endedOf says of ranks of the world, which are on this host, which of them make no step any
// more: their processes have ended, or have left the job. Those of this process are there.
func (s *Host) endedOf(ranks []int) []bool {
	ended := make([]bool, len(ranks))
	s.Mu.Lock()
	defer s.Mu.Unlock()
	topo, p := s.World.Topo, &s.Processes
	if p.pulses == nil {
		return ended
	}
	for i, w := range ranks {
		first := s.Procs[topo.Local(w)]
		ended[i] = first != s.Mine && p.hasEnded(topo.Local(first))
	}
	return ended
}

// Leavers are those of a site that wait.
type Leavers struct {
	host *Host
	n    atomic.Int32
	mu   sync.Mutex
	list []*Leaver
	made Lister // of all of them; nil: there has been none
}

// knows notes what lists the memory of a Comm.
func (s *Leavers) knows(made Lister) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = made
}

func (s *Leavers) add(l *Leaver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, l)
	s.n.Store(int32(len(s.list)))
}

// Settle ends the wait of those that need not wait any more.
func (s *Leavers) Settle() {
	if s.n.Load() == 0 {
		return
	}
	s.mu.Lock() // until all is done: see GiveUp
	defer s.mu.Unlock()
	var rest []*Leaver
	for _, l := range s.list {
		if !l.isReady() {
			rest = append(rest, l)
			continue
		}
		l.count()
		l.end()
	}
	s.list = rest
	s.n.Store(int32(len(rest)))
}

// GiveUp forgets them, before this process says that it leaves the job: from then on the others do
// not wait for it, and complete its pending exits.
func (s *Leavers) GiveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
	s.n.Store(0)
}
