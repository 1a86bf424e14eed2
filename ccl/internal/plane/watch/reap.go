package watch

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

// PartFrom parts from the processes that have ended, as far as hasParted says that no Comm can be in
// a call with any of those ranks, which were one process. It returns the ledgers of those whose
// slices this process is to empty, by Reap. A process that leaves the job is in no call of it any
// more; if it goes on in the job that has grown out of this one, it would not look again.
func (s *Processes) PartFrom(leaves bool, hasParted func(ranks []int) bool) (due []*atomic.Uint64) {
	mu := s.host.Mu
	mu.Lock()
	h := s.host.Host
	if s.pulse == nil || s.reaps && !leaves || h.Slices().Jobs() > 1 && (!leaves || h.Slices().IsHome(BoardOf(h).number)) {
		mu.Unlock()
		return nil
	}
	var ended []int
	for i := range s.others {
		if l := s.others[i].local; s.pulses[l].death.Load()&proc.OwnerDied != 0 && s.pulses[l].own.Load() != 0 {
			ended = append(ended, l)
		}
	}
	mu.Unlock()
	for _, l := range ended {
		if !leaves && !hasParted(s.host.RanksOf(s.host.World.Topo.Rank(s.host.Node, l))) {
			continue
		}
		mu.Lock()
		if s.pulse != nil {
			words := partedWords(len(s.pulses))
			row, mine := s.parted[l*words:][:words], s.host.place()
			row[mine/64].Or(1 << (mine % 64))
			if s.allParted(row) {
				due = append(due, &s.pulses[l].own)
			}
		}
		mu.Unlock()
	}
	if len(due) > 0 {
		mu.Lock()
		s.reaps = true
		mu.Unlock()
	}
	return due
}

// Reap empties the slices of which those are the ledgers. It may take seconds.
func (s *Processes) Reap(due []*atomic.Uint64) {
	h := s.host.Host
	for _, own := range due {
		if off := own.Load(); h.Slices().Reap(off, BoardOf(h).number) {
			own.CompareAndSwap(off, 0)
		}
	}
	s.host.Mu.Lock()
	s.reaps = false
	s.host.Mu.Unlock()
}

// allParted reports whether all processes of this host have parted from the one with that row, or
// have gone. Job.Mu is held.
func (s *Processes) allParted(row []atomic.Uint64) bool {
	for i := range s.others {
		l := s.others[i].local
		if !s.hasEnded(l) && row[l/64].Load()&(1<<(l%64)) == 0 {
			return false
		}
	}
	return true
}
