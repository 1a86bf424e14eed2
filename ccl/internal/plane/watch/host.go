package watch

import (
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/lived"
)

// Job is what watching needs of the job of a process. Package plane has what it points to.
type Job struct {
	Mu      *sync.Mutex // guards World, and what is kept of a host and of its neighbors
	World   *gone.State // which ranks have gone
	Lived   *lived.Clock
	Peer    *time.Duration // Options.PeerTimeout of the first Comm; 0: nobody is lost for silence
	Monitor proc.Watcher   // looks at all that is watched; it is told where it is to do so at once
}

// Host is what this process knows of one host: its memory, and the other processes there.
type Host struct {
	*Job
	Node int

	// Set once, by the first rank that comes by.
	Mine  int   // the lowest rank of this process on the host
	Procs []int // by rank of this host, the lowest rank of its process
	Host  *shm.Host

	Log       Log
	Processes Processes
	Ends      Ends
	Leavers   Leavers
}

// Init makes s this process's part in host node.
func (s *Host) Init(j *Job, node int) {
	s.Job, s.Node = j, node
	s.Log.host, s.Processes.host, s.Leavers.host = s, s, s
}

// memory is the host's, nil before this process has it, and after.
func (s *Host) memory() *shm.Host {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Host
}

// RanksOf lists the ranks of the world in the process of this host whose lowest rank is first.
func (s *Host) RanksOf(first int) []int {
	var ranks []int
	for l, p := range s.Procs {
		if p == first {
			ranks = append(ranks, s.World.Topo.Rank(s.Node, l))
		}
	}
	return ranks
}

// IsMine reports whether rank w of the world, which is on this host, is in this process.
func (s *Host) IsMine(w int) bool { return s.Procs[s.World.Topo.Local(w)] == s.Mine }

// Leads reports whether this process leads its host.
func (s *Host) Leads() bool {
	s.Mu.Lock()
	w := s.World.Lead(s.Node)
	s.Mu.Unlock()
	return w >= 0 && s.IsMine(w)
}

// Ending reports whether this process leaves its job.
func (s *Host) Ending() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.World.Leaves
}

// place is the lowest rank of this process among the ranks of the host.
func (s *Host) place() int { return s.World.Topo.Local(s.Mine) }
