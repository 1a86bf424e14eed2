package plane

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

// Leaver is a rank that leaves the memory of a Comm.
type Leaver struct {
	site  *Site
	host  *shm.Host
	local *region.Region
	place shm.Place
	me    int
	ranks []int // of the world, by rank of the host
	split bool  // the Comm is one of Split
	made  lister

	fails bool           // the Comm has failed, or will: a rank is lost
	waits bool           // for others that may end
	exit  *atomic.Uint64 // its entry among the pending exits of this process, while it waits; nil: none
	last  bool
	free  []shm.Place
}

// lister lists what the ranks of a host have made for the Comm of a region, which is to be freed with it.
type lister func(*shm.Host, *region.Region) []shm.Place

// Leave counts c out, which looks at nothing that the ranks share from here on. If it is the last,
// Free frees what made lists. Of a Comm of Split it counts no rank that never had it: the last to
// leave the Comm that was split does (see orphaned of package cpu).
func Leave(c *Member, split bool, made lister) *Leaver {
	g := c.Share.Local
	l := &Leaver{site: c.Site, host: c.Share.Host, local: g, me: c.Share.Me, split: split, made: made}
	for _, r := range c.Share.Ranks {
		l.ranks = append(l.ranks, c.Group.World(r))
	}
	l.fails = c.Fate.Cause() != nil || c.Site.Job.Losses() > 0 && slices.ContainsFunc(l.ranks, c.Site.Job.IsLost)
	c.Share.Shut()
	if _, err := l.host.View(g.Off, region.Bytes(g.N)); err != nil { // it is mapped already, so that cannot be
		return l
	}
	l.place = shm.PlaceAt(g.Off, region.Bytes(g.N))
	c.Site.leavers.knows(made)
	if l.fails && l.host.Shared() {
		g.Out(l.me).Store(region.WaitsOut)
		l.waits = !l.isReady()
	}
	if l.waits {
		l.listExit()
	} else {
		l.count()
	}
	return l
}

// Last reports whether this rank is the last of its host.
func (l *Leaver) Last() bool { return l.last }

// Free frees the shared memory of the Comm, if this rank is the last of its host. The rank has
// unmapped its views before. Where the rank waits for others, the monitor goes on.
func (l *Leaver) Free() {
	s := &l.site.leavers
	if l.waits {
		s.add(l)
	} else {
		l.end()
	}
	s.settle()
}

// isReady reports whether all others have been counted, or wait as this rank does, or have ended.
func (l *Leaver) isReady() bool {
	out := l.local.Left().Load() // first: a rank that is counted meanwhile is missed, and not taken for two
	ended := endedOf(l.site, l.ranks)
	for r := range l.ranks {
		switch s := l.local.Out(r).Load(); {
		case s == region.WaitsOut, s == region.ListedOut, s != region.IsOut && ended[r] && !l.neverIn(s):
			out++
		}
	}
	return out >= uint64(l.local.N)
}

// neverIn reports whether Region.Out says that a rank never had the Comm.
func (l *Leaver) neverIn(out uint64) bool { return l.split && out == 0 }

// count counts this rank out, and those that have ended and whose exits are not listed.
func (l *Leaver) count() {
	var ended []bool
	if l.host.Shared() && (l.fails || l.site.Job.Losses() > 0) {
		ended = endedOf(l.site, l.ranks)
	}
	if !l.takeExit() { // from here on nobody counts this rank if this process ends
		return
	}
	n := uint64(1)
	if ended != nil {
		for r := range l.ranks {
			s := l.local.Out(r).Load()
			if r != l.me && ended[r] && !l.neverIn(s) && s != region.ListedOut && s != region.IsOut &&
				l.local.Out(r).CompareAndSwap(s, region.IsOut) {
				n++
			}
		}
	}
	l.local.Out(l.me).Store(region.IsOut)
	if l.last = l.local.Left().Add(n) == uint64(l.local.N); l.last {
		l.free = l.made(l.host, l.local)
	}
}

// end unmaps the region, and frees what is to be freed.
func (l *Leaver) end() {
	l.host.Drop(l.place)
	for _, at := range l.free {
		l.host.Free(at.Off, int(at.Size))
	}
}

// endedOf says of ranks of the world, which are on the host of s, which of them make no step any
// more: their processes have ended, or have left the job. Those of this process are there.
func endedOf(s *Site, ranks []int) []bool {
	ended := make([]bool, len(ranks))
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	topo, p := s.Job.World.Topo, &s.Here.processes
	if p.pulses == nil {
		return ended
	}
	for i, w := range ranks {
		first := s.Here.Procs[topo.Local(w)]
		ended[i] = first != s.Here.Mine && p.hasEnded(topo.Local(first))
	}
	return ended
}

// leavers are those of a site that wait.
type leavers struct {
	n    atomic.Int32
	mu   sync.Mutex
	list []*Leaver
	made lister // of all of them; nil: there has been none
}

// knows notes what lists the memory of a Comm.
func (s *leavers) knows(made lister) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = made
}

func (s *leavers) add(l *Leaver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, l)
	s.n.Store(int32(len(s.list)))
}

// settle ends the wait of those that need not wait any more.
func (s *leavers) settle() {
	if s.n.Load() == 0 {
		return
	}
	s.mu.Lock() // until all is done: see giveUp
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
