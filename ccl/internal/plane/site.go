package plane

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Site is this process's part in one host of its job. A process has one, unless its
// ranks were told to count as on several hosts.
type Site struct {
	neighborhood
	numbers   atomic.Uint32   // of this process's events
	proposals event.Proposals // those of them that wait for a decision
	passed    event.Seen      // which events have come
	seen      status.Seen     // which statuses have come
}

// host is what this process knows of one host: its memory, and the other processes there.
type host struct {
	*Job
	Node int

	// Set once, by the first rank that comes by.
	Mine  int   // the lowest rank of this process on the host
	Procs []int // by rank of this host, the lowest rank of its process
	Host  *shm.Host

	log hostLog
	processes
	ends
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

// neighborhood is a host and its connections with others, which Job.mu guards.
type neighborhood struct {
	host
	conns   []*control.Conn
	joining map[int]bool // ranks of the world to which a connection is being made
	inPlane bool         // it has been connected first
}

func newSite(j *Job, node int) *Site {
	return &Site{neighborhood: neighborhood{host: host{Job: j, Node: node}, joining: map[int]bool{}}}
}

// How often a rank looks at a flag before it gives way: hardly at all where ranks outnumber processors, since then the rank
// that it waits for may need its processor.
const (
	spinsAlone   = 1024
	SpinsCrowded = 16
)

// spins is that number for the ranks of this host.
func (s *host) spins() int {
	if s.Topo.Locals(s.Node) > s.Host.Processors() || int(s.here.Load()) > runtime.GOMAXPROCS(0) {
		return SpinsCrowded
	}
	return spinsAlone
}

// agreeOnCrowding has the ranks of this host, more than two, agree on whether they outnumber their processors: what several of
// them do at once is done by turns then, and a Reduce goes another way. The first rank that comes here decides for all, since
// nothing that differs between ranks may choose a way.
func (c *Member) agreeOnCrowding() {
	if c.Share.N <= 2 {
		return
	}
	w := c.Share.Local.Crowding()
	if w.Load() == 0 {
		mine := region.RanksFit
		if c.Share.Spins == SpinsCrowded {
			mine = region.RanksCrowd
		}
		w.CompareAndSwap(0, mine)
	}
	c.Share.Local.Crowded = w.Load() == region.RanksCrowd
}

// Reset drops what an unsuccessful try has left, once nobody uses it.
func (s *Site) Reset() {
	s.hidePulse()
	s.CloseRinger()
	s.mu.Lock()
	d, ends := s.entrance, s.unix
	s.entrance, s.unix = nil, nil
	s.mu.Unlock()
	if d != nil {
		d.Shut()
		d.Drop()
	}
	for _, c := range ends {
		closeInOrder(c)
	}
	s.Attending.Wait()
	s.log.kept.Lock()
	s.log.kept.events = nil
	s.log.kept.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.scanned.Store(0)
	if s.Host != nil {
		s.Host.Close()
		s.Host = nil
	}
}
