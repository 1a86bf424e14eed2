package plane

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// The slices of a process that has ended are emptied by the others of its host: see shm.Host.Reap. Until all of them have failed
// every Comm with one of its ranks, a call of theirs may read there what counts: what a rank has offered before it ended is as
// good as any, so that a call may come to its end without it. Memory that is emptied too early would be zeros that nobody takes
// for wrong. So each process says of each that has ended when it has parted from it, in a bit for the two; the last one that
// does, by its own look, takes the ledger's place out of the pulse, and empties. A process that is in two jobs at a time, of
// which one grows out of the other, may have calls in both: in the second it parts when it has left the first.
//
// Nobody is waited for: with each beat the monitor looks again. The slices of a process that was only silent stay until it has ended.

// partedWords is how many words take a bit for each rank of a host.
func partedWords(n int) int { return (n + 63) / 64 }

// settleEstates is the monitor's look after the slices of processes of this host that have ended.
func settleEstates(s *Site) { partFrom(s, false) }

// leaveEstates is the last look of a process that leaves the job, and is in no call of it any more. One that is in the job that grows
// out of this one would not look again.
func leaveEstates(s *Site) { partFrom(s, true) }

// partFrom parts from the processes that have ended, and empties their slices where this one is the last that does.
func partFrom(s *Site, leaves bool) {
	s.Job.mu.Lock()
	h, p := s.Here.Host, &s.Here.processes
	if p.pulse == nil || h.Slices().Jobs() > 1 && (!leaves || h.Slices().IsHome(boardOf(h).number)) {
		s.Job.mu.Unlock()
		return
	}
	var ended []int
	for i := range p.others {
		if l := p.others[i].local; p.pulses[l].death.Load()&proc.OwnerDied != 0 && p.pulses[l].own.Load() != 0 {
			ended = append(ended, l)
		}
	}
	s.Job.mu.Unlock()
	for _, l := range ended {
		if !leaves && !hasParted(s, s.Here.ranksOf(s.Job.World.Topo.Rank(s.Here.Node, l))) {
			continue
		}
		s.Job.mu.Lock()
		off := uint64(0)
		if p.pulse != nil {
			words := partedWords(len(p.pulses))
			row, mine := p.parted[l*words:][:words], s.Job.World.Topo.Local(s.Here.Mine)
			row[mine/64].Or(1 << (mine % 64))
			if own := &p.pulses[l].own; p.allParted(row) {
				if off = own.Load(); !own.CompareAndSwap(off, 0) {
					off = 0
				}
			}
		}
		s.Job.mu.Unlock()
		if off != 0 {
			h.Slices().Reap(off, boardOf(h).number)
		}
	}
}

// hasParted reports whether no Comm of this process can be in a call with any of those ranks of the world, which were one process.
func hasParted(s *Site, ranks []int) bool {
	s.Job.mu.Lock()
	for _, w := range ranks {
		if !s.Job.World.dead[w] {
			s.Job.mu.Unlock()
			return false
		}
	}
	all := s.Job.comms.members(nil) // a later one fails as it begins: see add
	s.Job.mu.Unlock()
	for _, c := range all {
		for _, w := range ranks {
			if r := c.Group.RankOf(w); r >= 0 && c.Fate.Cause() == nil && !c.Share.HasLeft(r) {
				return false
			}
		}
	}
	return true
}

// allParted reports whether all processes of this host have parted from the one with that row, or have gone. Job.mu is held.
func (p *processes) allParted(row []atomic.Uint64) bool {
	for i := range p.others {
		l := p.others[i].local
		q := &p.pulses[l]
		if q.left.Load() == 0 && q.death.Load()&proc.OwnerDied == 0 && row[l/64].Load()&(1<<(l%64)) == 0 {
			return false
		}
	}
	return true
}
