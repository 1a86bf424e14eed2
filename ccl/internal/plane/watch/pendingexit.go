package watch

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// The ranks of a failed Comm count themselves out one after the other, each as its monitor looks.
// The last one may wait for a quarter of a second and longer while all others are out, and look at
// the region no more. Should its process end then, no rank of the Comm is left to count it. So a
// process lists pending exits in the memory of the host, behind the pulses. A pending exit names a
// region and a rank of the process that waits there. When the process has ended, or has left the
// job, any other process of the host completes the exit: it counts the rank, and frees the region
// if the rank was the last.
//
// A process that counts a rank whose exit is listed, its own or another's, takes the entry first,
// by an exchange. Until the rank is counted its region stays, so it is there for the process that
// has taken the entry. A rank says ListedOut first, and then lists its exit: a rank that is counted
// by way of Region.Out alone has no entry. Where more ranks of a process wait than it has entries,
// the others say WaitsOut, and are counted by ranks that wait as well.

// exitsEach is how many pending exits a process can list.
const exitsEach = 32

// pendingExit is an entry, 0 for none: the number of the region's first page | the number of its
// ranks | the rank that waits.
type pendingExit uint64

const exitBits = 18 // of a number of ranks; the other 28 are those of a page's number

func exitOf(g *region.Region, me int) pendingExit {
	return pendingExit(g.Off/uint64(shm.Page)<<(2*exitBits) | uint64(g.N)<<exitBits | uint64(me))
}

// region is what w names: how many ranks it is of, and which of them waits.
func (w pendingExit) region() (off uint64, n, me int) {
	const most = 1<<exitBits - 1
	return uint64(w>>(2*exitBits)) * uint64(shm.Page), int(w >> exitBits & most), int(w & most)
}

// completeExit counts out the rank of the entry at place, whose process has ended, and frees what
// made lists if it was the last of the host, unless another process is the one to do that.
func completeExit(place *atomic.Uint64, h *shm.Host, made Lister) {
	w := pendingExit(place.Load())
	if w == 0 {
		return
	}
	off, n, me := w.region()
	mem, err := h.View(off, region.Bytes(n)) // which is not looked at before the entry is taken
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

// listExit lists the exit of l, which waits, if there is room for an entry.
func (l *Leaver) listExit() {
	l.site.mu.Lock() // no other goroutine of this process lists one
	defer l.site.mu.Unlock()
	own := l.site.host.ownExits()
	for i := range own {
		if own[i].Load() != 0 {
			continue
		}
		if l.Local.Out(l.Me).CompareAndSwap(region.WaitsOut, region.ListedOut) {
			l.exit = &own[i]
			l.exit.Store(uint64(exitOf(l.Local, l.Me)))
		}
		return
	}
}

// takeExit reports whether this process is the one to count l out: no other has taken its entry.
func (l *Leaver) takeExit() bool {
	return l.exit == nil || l.exit.CompareAndSwap(uint64(exitOf(l.Local, l.Me)), 0)
}

// ownExits is where this process lists its pending exits, nil where no other process would read them.
func (s *Host) ownExits() []atomic.Uint64 {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Processes.exits == nil {
		return nil
	}
	return s.Processes.exitsOf(s.place())
}

// exitsOf are the entries of the process whose lowest rank is the l-th of the host. Job.Mu is held.
func (s *Processes) exitsOf(l int) []atomic.Uint64 { return s.exits[l*exitsEach:][:exitsEach] }

// CompleteExits completes the pending exits of processes of this host that have ended.
func (s *Leavers) CompleteExits() {
	s.mu.Lock()
	made := s.made
	s.mu.Unlock()
	if made == nil { // no Comm has been closed yet
		return
	}
	s.host.Mu.Lock()
	h, p := s.host.Host, &s.host.Processes
	var ended [][]atomic.Uint64
	for i := range p.others {
		if l := p.others[i].local; p.exits != nil && p.hasEnded(l) {
			ended = append(ended, p.exitsOf(l))
		}
	}
	s.host.Mu.Unlock()
	for _, exits := range ended {
		for i := range exits {
			completeExit(&exits[i], h, made)
		}
	}
}

// hasEnded reports whether the process whose lowest rank is the l-th of the host makes no step any
// more: it has ended, or has left the job. Job.Mu is held.
func (s *Processes) hasEnded(l int) bool {
	p := &s.pulses[l]
	return p.left.Load() != 0 || p.death.Load()&proc.OwnerDied != 0
}
