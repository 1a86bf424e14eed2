package plane

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
)

// HasLeft reports whether rank r has closed the Comm, as far as is known: of another host once all its ranks have.
func (c *Share) HasLeft(r int) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.group.Topology().Node(r) != c.group.Topology().Node(c.group.Rank()) {
		return slices.Contains(c.closed, c.group.Topology().Node(r))
	}
	return c.gone || c.Local.State(c.group.Topology().Local(r)).Load() == region.StateClosed
}

// LostOf notes in lost which ranks of g are lost, and returns how many of the job's are.
func (j *Job) LostOf(g *group.Group, lost []bool) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range lost {
		lost[r] = j.World.Of(g.World(r)).Lost
	}
	return j.World.Losses()
}

// Losses is how many ranks of the job are known to be lost.
func (j *Job) Losses() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Losses()
}

// HasEnded reports whether rank w of the world is lost and its end is certain.
func (j *Job) HasEnded(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Of(w).Certain
}

// IsLost reports whether rank w of the world is known to be lost.
func (j *Job) IsLost(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Of(w).Lost
}

// KnownLeft reports whether this process knows that rank w's has left in good order.
func (s *Site) KnownLeft(w int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.HasLeft(w)
}

// empty reports whether a rank of this host, of which nothing is there, will never send anything:
// its process has ended, or the Comm has failed there, so that it makes no call any more.
func (c *Standing) empty(peer int) bool {
	if peer < 0 || c.group.Topology().Node(peer) != c.group.Topology().Node(c.group.Rank()) {
		return false
	}
	s, ok := c.Site.Job.Statuses.At(c.group.ID(), int32(peer))
	return ok && s.Failed || c.Site.Job.IsLost(c.group.World(peer))
}

// hasParted reports whether no Comm of this process can be in a call with any of those ranks of the
// world, which were one process.
func (j *Job) hasParted(ranks []int) bool {
	j.mu.Lock()
	for _, w := range ranks {
		if !j.World.Of(w).Lost {
			j.mu.Unlock()
			return false
		}
	}
	all := j.comms.members(nil) // a later one fails as it begins: see add
	j.mu.Unlock()
	for _, c := range all {
		for _, w := range ranks {
			if r := c.Group.RankOf(w); r >= 0 && c.Fate.Cause() == nil && !c.Share.HasLeft(r) {
				return false
			}
		}
	}
	return true
}

// reapEnded empties the slices of processes of this host that have ended, as far as no Comm of this
// process can be in a call with one of their ranks, as when it leaves its job.
func (s *Site) reapEnded(leaves bool) {
	if due := s.Here.Processes.PartFrom(leaves, s.Job.hasParted); len(due) > 0 {
		s.Job.Life.Wg.Go(func() { s.Here.Processes.Reap(due) }) // close waits for it before it closes the host's memory
	}
}
