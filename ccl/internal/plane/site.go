package plane

import (
	"iter"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Site is this process's part in one host of its job. A process has one, unless its
// ranks were told to count as on several hosts.
type Site struct {
	Job       *Job
	Here      host            // the host
	near      neighborhood    // its connections with others
	proposals event.Proposals // events of this process that wait for a decision
	flood     control.Flood   // which events and statuses have come
	leavers   leavers         // ranks of this process that leave the memory of Comms
}

// host is what this process knows of one host: its memory, and the other processes there.
type host struct {
	Job  *Job
	Node int

	// Set once, by the first rank that comes by.
	Mine  int   // the lowest rank of this process on the host
	Procs []int // by rank of this host, the lowest rank of its process
	Host  *shm.Host

	log       hostLog
	processes processes
	Ends      ends
}

// hostLog is how far this process has read and written what the processes of a host tell each other.
type hostLog struct {
	scanned atomic.Uint64 // of the log of events
	read    uint64        // of the statuses; the monitor's
	kept    struct {      // events that the log had no room for yet
		sync.Mutex
		events []event.Event
	}
}

// ends is by what this process notices the end of others, and is woken by them.
type ends struct {
	unix      []*net.UnixConn        // under Job.mu
	entrance  Entrance               // under Job.mu
	Ringer    atomic.Pointer[ringer] // nil: the monitor never idles
	Attending sync.WaitGroup         // goroutines at the entrance and at the ends of unix: they use the host's memory
}

// neighborhood is the connections of a host with others, which Job.mu guards.
type neighborhood struct {
	host    *host
	conns   []*control.Conn
	joining map[int]bool  // ranks of the world to which a connection is being made
	inPlane bool          // it has been connected first
	heard   map[int]heard // by host: what has come from it
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
		s.reset()
	}
}

func newSite(j *Job, node int) *Site {
	s := &Site{Job: j, Here: host{Job: j, Node: node}, near: neighborhood{joining: map[int]bool{}, heard: map[int]heard{}}}
	s.near.host = &s.Here
	return s
}

// How often a rank looks at a flag before it gives way: hardly at all where ranks outnumber
// processors, since then the rank that it waits for may need its processor.
const (
	spinsAlone   = 1024
	SpinsCrowded = 16
)

// spins is that number for the ranks of this host.
func (s *host) spins() int {
	if s.Job.World.Topo.Locals(s.Node) > s.Host.Processors() || int(s.Job.Life.here.Load()) > runtime.GOMAXPROCS(0) {
		return SpinsCrowded
	}
	return spinsAlone
}

// reset gives back what the site holds: see DropSites.
func (s *Site) reset() {
	s.Here.hidePulse()
	s.Here.CloseRinger()
	s.Job.mu.Lock()
	d, ends := s.Here.Ends.entrance, s.Here.Ends.unix
	s.Here.Ends.entrance, s.Here.Ends.unix = nil, nil
	s.Job.mu.Unlock()
	if d != nil {
		d.Shut()
		d.Drop()
	}
	for _, c := range ends {
		closeInOrder(c)
	}
	s.Here.Ends.Attending.Wait()
	s.Here.log.kept.Lock()
	s.Here.log.kept.events = nil
	s.Here.log.kept.Unlock()
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	s.Here.log.scanned.Store(0)
	if s.Here.Host != nil {
		s.Here.Host.Close()
		s.Here.Host = nil
	}
}

// closeInOrder closes c, and says that this end is no accident.
func closeInOrder(c *net.UnixConn) {
	c.Write([]byte{'b'})
	c.Close()
}

// An Entrance is where other processes of a host come for its memory while the job begins.
type Entrance interface {
	Shut() // turns away those that come from now on
	Drop() // gives up the memory: those that have it already do not count
}
