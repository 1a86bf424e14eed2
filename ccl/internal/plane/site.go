package plane

import (
	"iter"
	"runtime"

	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Site is this process's part in one host of its job. A process has one, unless its
// ranks were told to count as on several hosts.
type Site struct {
	Job       *Job
	Here      watch.Host      // the host
	Near      watch.Neighbors // its connections with others
	proposals event.Proposals // events of this process that wait for a decision
	flood     control.Flood   // which events and statuses have come
}

// sites are those of a process, which Job.mu guards: its parts in the hosts that it counts as on now.
type sites []*Site

// of is the Site of that host, nil if there is none.
func (all sites) of(node int) *Site {
	for _, s := range all {
		if s.Here.Node == node {
			return s
		}
	}
	return nil
}

// sharing lists those where this process shares memory with others, and that memory.
func (all sites) sharing() iter.Seq2[*Site, *shm.Host] {
	return func(yield func(*Site, *shm.Host) bool) {
		for _, s := range all {
			if h := s.Here.Host; h.Shared() && !yield(s, h) {
				return
			}
		}
	}
}

// DropSites drops what an unsuccessful try to share memory has left, once nobody uses it. In the
// next try ranks may be on other hosts, and a process has no Site of one that it has left.
func DropSites(j *Job) {
	j.mu.Lock()
	all := j.sites
	j.sites = nil
	j.mu.Unlock()
	for _, s := range all {
		s.Here.Reset()
	}
}

func newSite(j *Job, node int) *Site {
	s := &Site{Job: j}
	s.Here.Init(&watch.Job{Mu: &j.mu, World: &j.World, Lived: &j.Time.Lived, Peer: &j.peer, Monitor: j}, node)
	s.Near.Init(&s.Here)
	return s
}

// PrivateHost makes the memory of a host whose ranks all live in this process.
func PrivateHost() *shm.Host { return watch.PrivateHost() }

// How often a rank looks at a flag before it gives way: hardly at all where ranks outnumber
// processors, since then the rank that it waits for may need its processor.
const (
	spinsAlone   = 1024
	SpinsCrowded = 16
)

// spinsOf is that number for the ranks of a host, of which so many live in this process.
func spinsOf(h *watch.Host, here int) int {
	if h.Job.World.Topo.Locals(h.Node) > h.Host.Processors() || here > runtime.GOMAXPROCS(0) {
		return SpinsCrowded
	}
	return spinsAlone
}
