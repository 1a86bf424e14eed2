package plane

import (
	"errors"
	"net"
	"slices"
)

// watch reports the end of the process at the other end of c, whose lowest rank is
// first, unless it says good bye. If this process leaves already, it says good bye itself; so it does where d is
// the door that the other one came through, and no longer the site's.
func (s *Site) watch(c *net.UnixConn, first int, d *door) {
	s.mu.Lock()
	late := s.leaving || d != nil && s.door != d
	if !late {
		s.unix = append(s.unix, c)
	}
	s.mu.Unlock()
	if late {
		closeInOrder(c)
		return
	}
	s.Attending.Go(func() {
		var b [1]byte
		n, _ := c.Read(b[:])
		s.mu.Lock()
		leaving := s.leaving || s.Host == nil || !slices.Contains(s.unix, c) // closed here: see giveUp
		s.mu.Unlock()
		if n > 0 || leaving {
			return
		}
		s.lostProcess(first, errors.New("its process ended"))
	})
}

// closeInOrder closes c, and says that this end is no accident.
func closeInOrder(c *net.UnixConn) {
	c.Write([]byte{'b'})
	c.Close()
}
