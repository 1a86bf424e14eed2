package plane

import (
	"sync/atomic"
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
