package plane

import (
	"net"
	"slices"
)

// SetEntrance notes the entrance to this host's memory, which is shut when the job begins.
func (s *host) SetEntrance(e Entrance) {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	s.Ends.entrance = e
}

// WatchEnd reports the end of the process at the other end of c, whose lowest rank is
// first, unless it says good bye. If this process leaves already, it says good bye itself; so it does where d is
// the entrance that the other one came through, and no longer the site's.
func (s *Site) WatchEnd(c *net.UnixConn, first int, d Entrance) {
	s.Job.mu.Lock()
	late := s.Job.World.Leaves || d != nil && s.Here.Ends.entrance != d
	if !late {
		s.Here.Ends.unix = append(s.Here.Ends.unix, c)
	}
	s.Job.mu.Unlock()
	if late {
		closeInOrder(c)
		return
	}
	s.Here.Ends.Attending.Go(func() {
		var b [1]byte
		n, _ := c.Read(b[:])
		s.Job.mu.Lock()
		// closed here: see giveUp
		leaving := s.Job.World.Leaves || s.Here.Host == nil || !slices.Contains(s.Here.Ends.unix, c)
		s.Job.mu.Unlock()
		if n > 0 || leaving {
			return
		}
		s.lostProcess(first, errEnded)
	})
}
