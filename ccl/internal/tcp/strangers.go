package tcp

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// strangers are the accepted connections that have not proved yet that they belong to the job.
// Their number is bounded: where it is reached the oldest goes, once it has had
// its patience. A rank of the job needs milliseconds; if it was dropped all the
// same, it dials again.
type strangers struct {
	max      int
	patience time.Duration

	mu    sync.Mutex
	list  list.List // of *stranger, oldest first
	freed chan struct{}
}

type stranger struct {
	net.Conn
	since time.Time
}

func newStrangers(max int, patience time.Duration) *strangers {
	return &strangers{max: max, patience: patience, freed: make(chan struct{}, 1)}
}

// admit takes conn in, if need be once there is room. It is called by one
// goroutine at a time. It returns nil, and has closed conn, if stop is closed.
func (s *strangers) admit(conn net.Conn, stop <-chan struct{}) *list.Element {
	for {
		s.mu.Lock()
		wait := time.Duration(0)
		if s.list.Len() >= s.max {
			oldest := s.list.Front().Value.(*stranger)
			if wait = s.patience - time.Since(oldest.since); wait <= 0 {
				oldest.Close() // its handshake fails, and says so by leave
				s.list.Remove(s.list.Front())
			}
		}
		if wait <= 0 {
			defer s.mu.Unlock()
			return s.list.PushBack(&stranger{conn, time.Now()})
		}
		s.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.freed:
			timer.Stop()
		case <-stop:
			timer.Stop()
			conn.Close()
			return nil
		}
	}
}

// leave makes room: the connection is known now, or closed. It is false if the
// connection has left before, or was dropped.
func (s *strangers) leave(e *list.Element) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.list.Len()
	s.list.Remove(e) // if it is there
	if s.list.Len() == before {
		return false
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
	return true
}
