package plane

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// The slices of a process that has ended are emptied by the others of its host: see shm.Host.Reap.
// Until all of them have failed every Comm with one of its ranks, a call of theirs may read there
// what counts: what a rank has offered before it ended is as good as any, so that a call may come
// to its end without it. Memory that is emptied too early would be zeros that nobody takes for
// wrong. So each process says of each that has ended when it has parted from it, in a bit for the
// two; the last one that does, by its own look, empties, and takes the ledger's place out of the
// pulse when that is done: if it is killed meanwhile, or they are two, another does the same. That
// may take seconds, so a goroutine does it, and not the monitor, which beats. A process that is in
// two jobs at a time, of which one grows out of the other, may have calls in both: in the second it
// parts when it has left the first.
//
// Nobody is waited for: with each beat the monitor looks again. The slices of a process that was
// only silent stay until it has ended.

// partedWords is how many words take a bit for each rank of a host.
func partedWords(n int) int { return (n + 63) / 64 }

// reapEnded is the monitor's look after the slices of processes of this host that have ended.
func reapEnded(s *Site) { partFrom(s, false) }

// reapLeaving is the last look of a process that leaves the job, and is in no call of it any more.
// A process that goes on in the job that has grown out of this job would not look again.
func reapLeaving(s *Site) { partFrom(s, true) }

// partFrom parts from the processes that have ended, and empties their slices where this one is the last that does.
func partFrom(s *Site, leaves bool) {
	s.Job.mu.Lock()
	h, p := s.Here.Host, &s.Here.processes
	if p.pulse == nil || p.reaps && !leaves || h.Slices().Jobs() > 1 && (!leaves || h.Slices().IsHome(boardOf(h).number)) {
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
	var due []*atomic.Uint64
	for _, l := range ended {
		if !leaves && !hasParted(s, s.Here.ranksOf(s.Job.World.Topo.Rank(s.Here.Node, l))) {
			continue
		}
		s.Job.mu.Lock()
		if p.pulse != nil {
			words := partedWords(len(p.pulses))
			row, mine := p.parted[l*words:][:words], s.Job.World.Topo.Local(s.Here.Mine)
			row[mine/64].Or(1 << (mine % 64))
			if p.allParted(row) {
				due = append(due, &p.pulses[l].own)
			}
		}
		s.Job.mu.Unlock()
	}
	if len(due) > 0 {
		s.Job.mu.Lock()
		p.reaps = true
		s.Job.mu.Unlock()
		s.Job.Life.Wg.Go(func() { reap(s, due) }) // close waits for it before it closes the host's memory
	}
}

// reap empties the slices of which those are the ledgers.
func reap(s *Site, due []*atomic.Uint64) {
	h := s.Here.Host
	for _, own := range due {
		if off := own.Load(); h.Slices().Reap(off, boardOf(h).number) {
			own.CompareAndSwap(off, 0)
		}
	}
	s.Job.mu.Lock()
	s.Here.processes.reaps = false
	s.Job.mu.Unlock()
}

// hasParted reports whether no Comm of this process can be in a call with any of those ranks of the
// world, which were one process.
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

// allParted reports whether all processes of this host have parted from the one with that row, or
// have gone. Job.mu is held.
func (p *processes) allParted(row []atomic.Uint64) bool {
	for i := range p.others {
		l := p.others[i].local
		if !p.hasEnded(l) && row[l/64].Load()&(1<<(l%64)) == 0 {
			return false
		}
	}
	return true
}
