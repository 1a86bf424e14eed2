package cpu

import (
	"errors"
	"net"
	"slices"
)

// watch reports the end of the process at the other end of c, whose lowest rank is
// first, unless it says good bye.
func (s *site) watch(c *net.UnixConn, first int) {
	s.mu.Lock()
	s.unix = append(s.unix, c)
	s.mu.Unlock()
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		var b [1]byte
		n, _ := c.Read(b[:])
		s.mu.Lock()
		leaving := s.leaving || s.host == nil || !slices.Contains(s.unix, c) // closed here: see giveUp
		s.mu.Unlock()
		if n > 0 || leaving {
			return
		}
		s.lostProcess(first, errors.New("its process ended"))
	}()
}
