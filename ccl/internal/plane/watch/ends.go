package watch

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Ends is by what this process notices the end of others, and is woken by them.
type Ends struct {
	unix      []*net.UnixConn        // under Job.Mu
	Entrance  Entrance               // under Job.Mu
	Ringer    atomic.Pointer[ringer] // nil: the monitor never idles
	Attending sync.WaitGroup         // goroutines at the entrance and at the ends of unix: they use the host's memory
}

// An Entrance is where other processes of a host come for its memory while the job begins.
type Entrance interface {
	Shut() // turns away those that come from now on
	Drop() // gives up the memory: those that have it already do not count
}

// SetEntrance notes the entrance to this host's memory, which is shut when the job begins.
func (s *Host) SetEntrance(e Entrance) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Ends.Entrance = e
}

// WatchEnd tells lost of the end of the process at the other end of c, whose lowest rank is first,
// unless it says good bye. If this process leaves already, it says good bye itself; so it does where
// d is the entrance that the other one came through, and no longer the host's.
func (s *Host) WatchEnd(c *net.UnixConn, first int, d Entrance, lost func(first int, why error)) {
	s.Mu.Lock()
	late := s.World.Leaves || d != nil && s.Ends.Entrance != d
	if !late {
		s.Ends.unix = append(s.Ends.unix, c)
	}
	s.Mu.Unlock()
	if late {
		closeInOrder(c)
		return
	}
	s.Ends.Attending.Go(func() {
		var b [1]byte
		n, _ := c.Read(b[:])
		s.Mu.Lock()
		// closed here: see Reset and SayBye
		leaving := s.World.Leaves || s.Host == nil || !slices.Contains(s.Ends.unix, c)
		s.Mu.Unlock()
		if n > 0 || leaving {
			return
		}
		lost(first, ErrEnded)
	})
}

// SayBye tells the processes that watch this one's end that it leaves in good order, and shuts the entrance.
func (s *Host) SayBye() {
	s.Mu.Lock()
	watched, d := slices.Clone(s.Ends.unix), s.Ends.Entrance // and no more of them: this process leaves
	s.Mu.Unlock()
	for _, c := range watched {
		closeInOrder(c)
	}
	if d != nil {
		d.Shut()
	}
}

// closeInOrder closes c, and says that this end is no accident.
func closeInOrder(c *net.UnixConn) {
	c.Write([]byte{'b'})
	c.Close()
}
